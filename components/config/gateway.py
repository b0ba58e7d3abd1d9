"""What the front door's HAProxy does, as the text of its configuration. Pure: no Pulumi, no files.

Owns what may be asked, what is passed on, which node gets a request, and what the caller hears where none can. Leaves
out who may call (IAM, before a request gets here) and the service around it (`IdentityGateway`).

- Only `/v1/*`, `/tokenize`, `/health`, `/version` and `/metrics` get through, by GET and POST, in their plain spelling:
  anything that a server behind could read as another path (`..`, `//`, `%`, a whole URL) is not found.
- What tells who called stays here: the node gets no token, cookie or address of the caller. Neither does it get an
  `Upgrade`: a connection that left HTTP/1.1 would get around the list of paths (so no WebSockets).
- Each request opens a connection of its own to the node. One kept open, which the server closes in the wrong moment
  (uvicorn does after 5 s), would fail a request that must not be sent twice; a new one costs one way in the network.
- A caller that leaves ends its request at the node too, as nobody waits for its tokens: a stream with its next piece,
  any other where HAProxy looks for it meanwhile (2.6.12 does not, the node then answers to nobody).
- A node that fails three checks gets nothing until it passes one. What it is answering goes on: it may be busy only.
  Of a machine that vanished without a word the kernel tells, by keep-alive probes, within a minute.
- A fleet shares its load by the least connections, not by session: vLLM keeps none (a prefix that another node has
  cached costs time, nothing else), and long conversations would pile up at one node.
- `/metrics` of a fleet asks for the node, `/metrics?node=0`: counters that come from another node at each look are
  worse than none. It is asked even while it counts as sick; that is when its metrics matter.

Facts: an instance with direct VPC egress may reach the network only a minute after its start (docs of Cloud Run,
November 2026). So the startup probe passes when a node answers, or after `PROBE_ATTEMPTS` attempts without one.
HAProxy 2.6.12 crashes where a log-format `http-error` stands in `defaults`: they stand in the frontend.

What HAProxy cannot parse (words, two lengths, a chunk without a size) it answers before any of these lines counts, with
a page of its own in HTML. Nothing in a configuration of 2.6.12 changes that; 3.2 has taken an `errorfile` (a file, no
text in the configuration) for it since 3.2.4, its issue 3032. No caller meets that page: Cloud Run's front end refuses
what is not HTTP itself, with a page of Google's. So HAProxy's limits are put beyond that front end's, however a head of
64 KiB is divided into lines, and everything else that is refused here is refused in the promised JSON.
"""

import json
from collections.abc import Sequence
from ipaddress import IPv4Address

PROBE_PATH = "/gateway"
"""What the startup probe asks; no path of vLLM's."""
PROBE_ATTEMPTS = 30
"""After so many it passes without a node: then it is for callers to hear that there is none."""
_SERVED = r"^(/v1(/[A-Za-z0-9_-]+([.:][A-Za-z0-9_-]+)*)+|/tokenize|/health|/version|/metrics)$"
# Who called, on which way, and what belongs to one connection only.
_KEPT_BACK = (
    r"^(authorization|proxy-.*|cookie|x-api-key|forwarded|via|x-forwarded-.*|x-real-ip|x-goog-.*|x-serverless-.*"
    r"|connection|upgrade|http2-settings|te|trailer|keep-alive)$"
)


class NodeAddressError(ValueError):
    """An address that no configuration can be made of; the text says what to do."""


def gateway_configuration(addresses: Sequence[str | None], port: int) -> str:
    """Write the configuration for some nodes.

    It reads two variables of the environment: `PORT`, where it listens, and `GATEWAY_ADDRESS`, at which address (by
    default at all of them, as a container must).

    Args:
        addresses: IPv4 addresses of the nodes, "" or None for one that is not there (yet, or any more); a node's number
            is its place here.
        port: Where vLLM listens on each of them.

    Raises:
        NodeAddressError: A text is no address, or there is not even a place for a node.
    """
    _check(addresses)
    there = [number for number, address in enumerate(addresses) if address]
    lines = [*_PROCESS, *_frontend(len(addresses), there), *_backend(len(addresses))]
    servers = [f"    server node-{number} {addresses[number]}:{port}" for number in there]
    return "\n".join([*lines, *servers, ""])


def _check(addresses: Sequence[str | None]) -> None:
    given = [(number, address) for number, address in enumerate(addresses) if address]
    wrong = [f"node {number}: {address!r}" for number, address in given if not _is_address(address)]
    if wrong or not addresses:
        raise NodeAddressError(
            f"{'; '.join(wrong) or 'no node'}: not an IPv4 address, so the gateway could not reach it; pass the"
            " internal address of each node, e.g. 10.64.0.5"
        )


def _is_address(text: str) -> bool:
    try:
        return str(IPv4Address(text)) == text
    except ValueError:
        return False


_BUFFER = 131072  # bytes: a head of 64 KiB, the most that Google's front end passes, and 8 more for each of its lines
_MOST_HEADERS = 16384  # lines of a head: as many as 64 KiB hold; 101 by default

# One thread, as the container has one CPU: attempts of the probe are counted without a lock, and the least connections
# are those of the whole process.
_PROCESS = (
    "global",
    "    log stdout format raw local0 info",
    "    nbthread 1",
    "    maxconn 2000",
    f"    tune.bufsize {_BUFFER}",
    f"    tune.http.maxhdr {_MOST_HEADERS}",
    "    set-var proc.attempts int(0)",
    "",
    "defaults",
    "    mode http",
    "    log global",
    "    option httplog",
    "    option dontlog-normal",
    "    option http-server-close",
    "    option http-no-delay",
    "    timeout http-request 30s",
    "    timeout http-keep-alive 3600s",
    "    timeout client 3600s",
    "    timeout connect 3s",
    "    timeout server 3600s",
    "    timeout check 10s",
    "",
)


def _frontend(nodes: int, there: Sequence[int]) -> list[str]:
    not_served = _answer(404, "The gateway serves /v1/*, /tokenize, /health, /version and /metrics.")
    not_taken = _answer(405, "The gateway takes GET and POST.")
    return [
        "frontend gateway",
        '    bind "${GATEWAY_ADDRESS-*}:${PORT}"',
        *_errors(nodes),
        # `url` is the target as it came, `path` also the path of a target that is a whole URL.
        "    acl plain url -m beg /",
        f"    acl served path -m reg {_SERVED}",
        f"    acl startup path -m str {PROBE_PATH}",
        f"    {not_served} unless plain served or plain startup",
        f"    {not_taken} hdr Allow 'GET, POST' unless {{ method GET POST }}",
        *(_asked_for_one(there) if nodes > 1 and there else ()),
        "    http-request set-var(proc.attempts) var(proc.attempts),add(1) if startup",
        f"    acl patient var(proc.attempts) -m int le {PROBE_ATTEMPTS}",
        "    http-request return status 200 content-type text/plain string 'no node yet' if startup !patient",
        "    http-request set-path /health if startup",
        f"    http-request del-header {_KEPT_BACK} -m reg",
        "    default_backend nodes",
        "",
    ]


def _asked_for_one(there: Sequence[int]) -> tuple[str, ...]:
    numbers = [str(number) for number in there]
    text = f"Each node counts for itself: ask for one, /metrics?node=N with N of {', '.join(numbers)}."
    return (
        "    acl metrics path -m str /metrics",
        f"    acl known url_param(node) -m str {' '.join(numbers)}",
        f"    {_answer(400, text)} if metrics !known",
    )


def _backend(nodes: int) -> list[str]:
    asked_for = [
        "    acl metrics path -m str /metrics",
        "    force-persist if metrics",
        "    use-server node-%[url_param(node)] if metrics",
    ]
    return [
        "backend nodes",
        "    balance leastconn",
        "    retries 3",
        "    option redispatch 1",
        "    option abortonclose",
        "    option srvtcpka",
        "    srvtcpka-idle 30s",
        "    srvtcpka-intvl 10s",
        "    srvtcpka-cnt 3",
        "    option httpchk",
        "    http-check send meth GET uri /health ver HTTP/1.1 hdr Host node",
        "    http-check expect status 200",
        *(asked_for if nodes > 1 else ()),
        "    default-server check inter 5s fastinter 1s downinter 2s fall 3 rise 1 tcp-ut 60s",
    ]


def _errors(nodes: int) -> list[str]:
    """What the caller hears where HAProxy itself must answer, in the shape of vLLM's errors."""
    well = f"%[nbsrv(nodes)] of {nodes} passed the last health checks"
    texts = {
        400: "The request is not valid HTTP.",
        408: "The request did not come in time.",
        500: "The gateway could not handle the request.",
        502: "The node broke the connection off.",
        504: "The node did not answer within an hour.",
    }
    plain = [f"    http-error status {code} {_body(code, text)}" for code, text in texts.items()]
    unwell = f"No node behind this gateway could take the request: {well}."
    return [*plain, f"    http-error status 503 {_body(503, unwell, 'lf-string')} hdr Retry-After 10"]


def _answer(code: int, text: str) -> str:
    return f"http-request return status {code} {_body(code, text)}"


def _body(code: int, text: str, kind: str = "string") -> str:
    error = {"message": text, "type": "gateway_error", "param": None, "code": code}
    return f"content-type application/json {kind} '{json.dumps({'error': error})}'"
