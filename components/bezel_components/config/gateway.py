"""Configuration of the gateway's HAProxy, as text. Pure: no Pulumi, no files.

Owns the served paths, the forwarded headers, the choice of a node, and the error when no node is available. Leaves out
the invokers (IAM, before a request gets here) and the service around it (`IdentityGateway`).

- Only `/v1/*`, `/tokenize`, `/health`, `/version` and `/metrics` get through, by GET and POST, in their plain spelling:
  anything that a server behind could read as another path (`..`, `//`, `%`, a whole URL) is not found.
- The caller's identity is not forwarded: the node gets no token, cookie or address of the caller. Neither does it get
  an `Upgrade`: a connection that left HTTP/1.1 would get around the list of paths (so no WebSockets).
- Each request opens a connection of its own to the node. A reused one, which the server closes at the wrong moment
  (uvicorn does after 5 s), would fail a request that must not be sent twice; a new one costs one network round trip.
- A caller that disconnects ends its request at the node too: a stream at its next chunk, any other if HAProxy checks
  for the disconnect meanwhile (2.6.12 does not; the node then completes it for no reader).
- A node that fails three checks gets no new requests until it passes one. Its running requests continue: it may only
  be busy. The kernel's keep-alive probes detect within a minute a machine that vanished without closing connections.
- A fleet shares its load by least connections, not by session: vLLM has none (a prefix cached on another node costs
  only time), and long conversations would pile up at one node.
- Where nodes come and go by the hour, every address that they may get is a server. HAProxy takes each in at its start,
  and one without a node out at its first check, which is soon; a request that comes before is sent on to the others.
- With a fallback, a Cloud Run service serves while no node lives (`gateway_fallback`).
- `/metrics` of a fleet requires the node, `/metrics?node=0`: counters from a different node at each request are worse
  than none. The request is sent even to an unhealthy node; that is when its metrics matter.

Facts: an instance with direct VPC egress may reach the network only a minute after its start (docs of Cloud Run,
November 2026). So the startup probe passes when a node answers, or after `PROBE_ATTEMPTS` attempts without one.
HAProxy 2.6.12 crashes on a log-format `http-error` in `defaults`: they are in the frontend.

A request that HAProxy cannot parse (free text, two lengths, a chunk without a size) gets HAProxy's own HTML page before
any of these lines applies. No configuration of 2.6.12 changes that; 3.2 accepts an `errorfile` (a file, no text in the
configuration) for it since 3.2.4, its issue 3032. No caller sees that page: Cloud Run's front end itself refuses
anything but HTTP, with a page of Google's. So HAProxy's limits are above that front end's, however a head of 64 KiB is
divided into lines, and every other refusal here is in the promised JSON.
"""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address

from bezel.planner.fallback import gateway_checks
from bezel_base.errors import Problem, UserError
from bezel_components.config import gateway_fallback
from bezel_components.config.gateway_errors import error_body, return_error

PROBE_PATH = "/gateway"
"""Path of the startup probe; not one of vLLM's."""
PROBE_ATTEMPTS = 30
"""After so many the probe passes without a node: then callers get an error that there is none."""
_SERVED = r"^(/v1(/[A-Za-z0-9_-]+([.:][A-Za-z0-9_-]+)*)+|/tokenize|/health|/version|/metrics)$"
# Headers with the caller's identity or route, and those of one connection only.
_REMOVED_HEADERS = (
    r"^(authorization|proxy-.*|cookie|x-api-key|forwarded|via|x-forwarded-.*|x-real-ip|x-goog-.*|x-serverless-.*"
    r"|connection|upgrade|http2-settings|te|trailer|keep-alive)$"
)


class NodeAddressError(UserError):
    """An invalid node address."""


def gateway_configuration(
    addresses: Sequence[str | None], port: int, machines: int | None = None, fallback: str | None = None
) -> str:
    """Write the configuration for some nodes.

    It reads two environment variables: `PORT` and `GATEWAY_ADDRESS`, the port and the address to listen at (by default
    all addresses, as a container must).

    Args:
        addresses: IPv4 addresses of the nodes, "" or None for a missing one (not there yet, or any more); a node's
            number is its index here.
        port: vLLM's port on each of them.
        machines: How many nodes there are at a time, where these are all addresses that they may have; None where each
            address is that of a node.
        fallback: URL of the Cloud Run service that serves while no node lives (`gateway_fallback`).

    Raises:
        NodeAddressError: A text is no IPv4 address, or the sequence is empty.
        FallbackUrlError: The fallback's URL is not that of a Cloud Run service.
    """
    _check(addresses)
    servers = {number: f"{address}:{port}" for number, address in enumerate(addresses) if address}
    nodes = len(addresses) if machines is None else machines
    if fallback is not None:
        return "\n".join([*_with_fallback(fallback, nodes, servers), ""])
    present = list(servers)
    lines = [*_process(_CONNECTIONS), *_frontend(nodes, present), *_backend(nodes, len(present))]
    return "\n".join([*lines, *(f"    server node-{number} {server}" for number, server in servers.items()), ""])


def _with_fallback(url: str, nodes: int, servers: Mapping[int, str]) -> list[str]:
    present = list(servers)
    return [
        *_process(gateway_fallback.CONNECTIONS, gateway_fallback.PROCESS),
        *_frontend(nodes, present, fallback=True),
        *_backend(nodes, len(present), fallback=True),
        *gateway_fallback.servers(servers),
        "",
        *gateway_fallback.machines(servers, [*_sharing(_retries(nodes, len(present))), *_metrics_of_node(nodes)]),
        "",
        *gateway_fallback.service(url),
    ]


def _check(addresses: Sequence[str | None]) -> None:
    numbered = [(number, address) for number, address in enumerate(addresses) if address]
    wrong = [f"node {number}: {address!r}" for number, address in numbered if not _is_address(address)]
    if wrong or not addresses:
        raise NodeAddressError(
            Problem(
                "nodes",
                "; ".join(wrong) or "(none)",
                "the gateway cannot reach a node without an IPv4 address.",
                "pass the internal address of each node, e.g. 10.64.0.5.",
            )
        )


def _is_address(text: str) -> bool:
    try:
        return str(IPv4Address(text)) == text
    except ValueError:
        return False


_BUFFER = 131072  # bytes: a head of 64 KiB, the most that Google's front end forwards, and 8 more for each of its lines
_MAX_HEADERS = 16384  # lines of a head: as many as 64 KiB hold; 101 by default

_CONNECTIONS = 2000

# One thread, as the container has one CPU: attempts of the probe are counted without a lock, and the least connections
# are those of the whole process.
_PROCESS = (
    f"    tune.bufsize {_BUFFER}",
    f"    tune.http.maxhdr {_MAX_HEADERS}",
    "    set-var proc.attempts int(0)",
)
_DEFAULTS = (
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
    f"    timeout connect {gateway_checks.CONNECT}s",
    "    timeout server 3600s",
    f"    timeout check {gateway_checks.RESPONSE}s",
    "",
)


def _process(connections: int, more: Sequence[str] = ()) -> list[str]:
    first = ("global", "    log stdout format raw local0 info", "    nbthread 1", f"    maxconn {connections}")
    return [*first, *_PROCESS, *more, "", *_DEFAULTS]


def _frontend(nodes: int, present: Sequence[int], *, fallback: bool = False) -> list[str]:
    not_served = return_error(404, "The gateway serves /v1/*, /tokenize, /health, /version and /metrics.")
    not_accepted = return_error(405, "The gateway accepts GET and POST.")
    attempts = gateway_fallback.probe_attempts(present) if fallback else PROBE_ATTEMPTS
    return [
        "frontend gateway",
        '    bind "${GATEWAY_ADDRESS-*}:${PORT}"',
        *_errors(nodes, len(present), "machines" if fallback else "nodes"),
        *(gateway_fallback.path_rules() if fallback else ()),
        # `url` is the unchanged request target; `path` is also set for a target that is a whole URL.
        "    acl plain url -m beg /",
        f"    acl served path -m reg {_SERVED}",
        f"    acl startup path -m str {PROBE_PATH}",
        f"    {not_served} unless plain served or plain startup",
        f"    {not_accepted} hdr Allow 'GET, POST' unless {{ method GET POST }}",
        *(_metrics_by_node(present, nodes) if nodes > 1 and present else ()),
        "    http-request set-var(proc.attempts) var(proc.attempts),add(1) if startup",
        f"    acl patient var(proc.attempts) -m int le {attempts}",
        "    http-request return status 200 content-type text/plain string 'no node yet' if startup !patient",
        *(gateway_fallback.rules(present) if fallback else ()),
        "    http-request set-path /health if startup",
        f"    http-request del-header {_REMOVED_HEADERS} -m reg",
        *(gateway_fallback.choice() if fallback else ()),
        "    default_backend nodes",
        "",
    ]


def _metrics_by_node(present: Sequence[int], nodes: int) -> tuple[str, ...]:
    numbers = [str(number) for number in present]
    some = f"; {nodes} of them have a node" if len(present) > nodes else ""
    text = f"Each node has its own metrics: request /metrics?node=N, where N is {' or '.join(numbers)}{some}."
    return (
        "    acl metrics path -m str /metrics",
        f"    acl known url_param(node) -m str {' '.join(numbers)}",
        f"    {return_error(400, text)} if metrics !known",
    )


def _metrics_of_node(nodes: int) -> tuple[str, ...]:
    """Lines by which metrics come from the node that is named, healthy or not; none where there is one node."""
    if nodes == 1:
        return ()
    return (
        "    acl metrics path -m str /metrics",
        "    force-persist if metrics",
        "    use-server node-%[url_param(node)] if metrics",
    )


def _retries(nodes: int, servers: int) -> int:
    return servers if servers > nodes else 3


def _sharing(retries: int) -> list[str]:
    """Lines of a section that shares its requests between nodes."""
    return [
        "    balance leastconn",
        f"    retries {retries}",
        "    option redispatch 1",
        "    option abortonclose",
        "    option srvtcpka",
        "    srvtcpka-idle 30s",
        "    srvtcpka-intvl 10s",
        "    srvtcpka-cnt 3",
    ]


def _backend(nodes: int, servers: int, *, fallback: bool = False) -> list[str]:
    interval = "2s" if servers > nodes else "5s"
    checks = f"check inter {interval} fastinter 1s downinter 2s fall 3 rise 1 tcp-ut 60s"
    return [
        "backend nodes",
        *_sharing(_retries(nodes, servers)),
        "    option httpchk",
        "    http-check send meth GET uri /health ver HTTP/1.1 hdr Host node",
        "    http-check expect status 200",
        *(() if fallback else (*_metrics_of_node(nodes), f"    default-server {checks}")),
    ]


def _errors(nodes: int, servers: int, counted: str) -> list[str]:
    """Errors that HAProxy itself returns, in the format of vLLM's; the servers of one section are counted."""
    healthy = f"%[nbsrv({counted})] of {nodes} passed the last health checks"
    if servers > nodes:  # one that was not checked yet counts as healthy
        healthy = f"it has {nodes} at a time, at {servers} possible addresses"
    texts = {
        400: "The request is not valid HTTP.",
        408: "The request was not received in time.",
        500: "The gateway could not handle the request.",
        502: "The node closed the connection.",
        504: "The node did not respond within an hour.",
    }
    plain = [f"    http-error status {code} {error_body(code, text)}" for code, text in texts.items()]
    elsewhere = "; the fallback has the same path below /fallback" if counted == "machines" else ""
    no_node = f"No node behind this gateway could take the request: {healthy}{elsewhere}."
    return [*plain, f"    http-error status 503 {error_body(503, no_node, 'lf-string')} hdr Retry-After 10"]
