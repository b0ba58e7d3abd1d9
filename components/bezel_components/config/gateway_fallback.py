"""Fallback of a gateway: the part of HAProxy's configuration for a Cloud Run service that serves while no node lives.

Owns the way to the service, the gateway's identity for it, the choice between nodes and fallback, and the errors of
the fallback. Leaves the nodes, the served paths and the removed headers to `gateway`.

- The fallback is the nodes' backup server, as a socket of this process. So a request whose connection to a dead node
  fails is sent on to it, and a node gets no token: the identity is added behind that socket.
- Three failed connections, or checks, take a node out (`bezel.planner.fallback.gateway_checks`). A request that a node
  has got is not sent again: it may be paid twice.
- A node that returns takes over gradually, by the weight that HAProxy raises while a server starts slowly: requests
  beyond that share go to the fallback, and streams that began end where they began.
- The identity is a token for the fallback's own URL from the metadata server, in Cloud Run's own header: no secret of
  the stack, and `Authorization`, which is the caller's, is never forwarded.
- `/lease/…` and `/fallback/…` are the same paths of one of both, for checks and comparisons. Without them `/metrics`
  are a node's, and neither `/health` nor the startup probe starts an instance of the fallback.
- Google's front end answers in HTML where no instance takes a request, or the identity is refused. Callers get the
  gateway's JSON in its place.

Facts: the proxy's image has Lua 5.3, and Debian's certificates as `@system-ca` (docker-library/haproxy, 2.6). An
address that a name no longer resolves to is kept for an hour: resolving pauses with the CPU.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from bezel.planner.fallback import gateway_checks as checks
from bezel_base.errors import Problem, UserError
from bezel_components.config.gateway_errors import error_body, return_error

PROBE_ATTEMPTS = 10
"""As `gateway.PROBE_ATTEMPTS`, which is longer: here something serves without a node."""
LEASE, FALLBACK = "lease", "fallback"
"""The two that serve: values of the header, and first parts of a path that one of both has to serve."""
SERVED_BY = "X-Served-By"
"""Header of every response: which of both has served."""
IDENTITY = "GATEWAY_IDENTITY"
"""The environment variable that holds the Lua program of the identity."""
SOCKET_OWNER = "GATEWAY_PROCESS"
"""The environment variable that makes the socket's name this process's own."""

CONNECTIONS = 4000
"""Two for each request to the fallback."""
PROCESS = ("    lua-load /dev/fd/3",)
"""Further lines of the section `global`."""
_CHECKS = (
    f"check inter {checks.INTERVAL}s fastinter {checks.FAST_INTERVAL}s downinter 2s fall {checks.FAILURES} rise 1 "
    f"tcp-ut 60s weight 100 slowstart {checks.RETURN}s observe layer4 error-limit {checks.FAILURES} on-error mark-down"
)

_URL = re.compile(r"https://([a-z0-9.-]+)|http://(127\.0\.0\.1):(\d+)")
_LUA = Path(__file__).parent / "gateway_identity.lua"
_SOCKET = f'"abns@bezel-fallback-${{{SOCKET_OWNER}}}"'
_KEEP = "1h"


class FallbackUrlError(UserError):
    """A fallback's URL that the gateway does not send an identity to."""


@functools.cache
def identity_program() -> str:
    """The Lua program of the identity, without its comments."""
    lines = _LUA.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))


def probe_attempts(present: Sequence[int]) -> int:
    """How often the startup probe fails before it passes without a node; `present` are the numbers of the nodes."""
    return PROBE_ATTEMPTS if present else 0


def path_rules() -> list[str]:
    """Rules of the frontend, before all others, that take off the part of a path which says what has to serve it."""
    return [
        f"    http-request set-var(txn.server) path,field(2,/) if {{ path -m reg ^/({LEASE}|{FALLBACK})/ }}",
        f"    http-request replace-path ^/({LEASE}|{FALLBACK})(/.*)$ \\2",
    ]


def rules(present: Sequence[int]) -> list[str]:
    """Rules of the frontend that read what the choice depends on; `present` are the numbers of the nodes."""
    shares = [
        f"    http-request set-var(txn.share) srv_weight(nodes/node-{number}),add(txn.share) "
        f"if {{ srv_is_up(nodes/node-{number}) }}"
        for number in present
    ]
    free = "{ path -m str /health } !{ var(txn.server) -m found } !alive"
    return [
        "    http-request set-var(txn.share) int(0)",
        *shares,
        "    acl alive nbsrv(machines) gt 0",
        f"    http-request return status 200 hdr {SERVED_BY} {FALLBACK} if {free}",
    ]


def choice() -> list[str]:
    """Lines of the frontend that choose between the nodes and the fallback; the nodes are its default."""
    return [
        "    acl metrics path -m str /metrics",
        "    acl health path -m str /health",
        f"    use_backend fallback if {{ var(txn.server) -m str {FALLBACK} }}",
        "    use_backend machines if { var(txn.server) -m found } or health or metrics",
        "    acl within_share rand(100),sub(txn.share) -m int lt 0",
        "    use_backend fallback if alive !within_share",
    ]


def servers(nodes: Mapping[int, str]) -> list[str]:
    """Servers of the nodes' section: each by its number and address with port, and the fallback while none lives."""
    return [
        f"    http-response set-header {SERVED_BY} {LEASE} unless {{ srv_name -m str {FALLBACK} }}",
        *(f"    server node-{number} {address} {_CHECKS}" for number, address in nodes.items()),
        f"    server {FALLBACK} {_SOCKET} backup",
    ]


def machines(nodes: Mapping[int, str], lines: Sequence[str]) -> list[str]:
    """The section of the nodes alone, with the lines that it shares with theirs."""
    return [
        "backend machines",
        *lines,
        f"    http-response set-header {SERVED_BY} {LEASE}",
        *(f"    server node-{number} {address} track nodes/node-{number}" for number, address in nodes.items()),
    ]


def service(url: str) -> list[str]:
    """The sections that send to the fallback, with the gateway's identity.

    Raises:
        FallbackUrlError: The URL is not that of a Cloud Run service.
    """
    return [*_socket(), "", *_identity(url), "", *_service(url)]


def _socket() -> list[str]:
    return ["backend fallback", "    option abortonclose", f"    server {FALLBACK} {_SOCKET}"]


def _identity(url: str) -> list[str]:
    host = _split(url)[0]
    no_identity = return_error(503, "The gateway got no identity for the fallback from the metadata server.")
    return [
        "frontend identity",
        f"    bind {_SOCKET}",
        f"    http-after-response set-header {SERVED_BY} {FALLBACK}",
        *_errors(),
        f"    http-request lua.fallback_identity {url}",
        f"    {no_identity} hdr Retry-After 10 unless {{ var(txn.identity) -m found }}",
        "    http-request set-header X-Serverless-Authorization %[var(txn.identity)]",
        f"    http-request set-header Host {host}",
        "    default_backend service",
    ]


def _errors() -> list[str]:
    texts = {
        500: "The gateway could not handle the request.",
        502: "The fallback closed the connection.",
        503: "No node behind this gateway is available, and the fallback could not be reached.",
        504: "The fallback did not respond within an hour.",
    }
    return [f"    http-error status {code} {error_body(code, text)}" for code, text in texts.items()]


def _service(url: str) -> list[str]:
    host, port, is_plain = _split(url)
    refused = return_error(502, "The fallback refused the identity of the gateway.", "http-response")
    busy = return_error(
        503, "The fallback did not take the request: HTTP %[var(txn.refusal)].", "http-response", "lf-string"
    )
    tls = f' ssl verify required ca-file "${{GATEWAY_AUTHORITIES-@system-ca}}" sni str({host}) verifyhost {host}'
    named = " resolvers names init-addr last,libc,none"
    return [
        *(() if is_plain else (*_RESOLVERS, "")),
        "backend service",
        "    option abortonclose",
        "    acl html res.hdr(content-type) -m beg text/html",
        f"    {refused} if {{ status 401 403 }}",
        "    http-response set-var(txn.refusal) status",
        f"    {busy} hdr Retry-After 30 if html {{ status ge 400 }}",
        f"    server service {host.partition(':')[0]}:{port}{'' if is_plain else tls + named}",
    ]


_RESOLVERS = (
    "resolvers names",
    "    parse-resolv-conf",
    "    accepted_payload_size 4096",
    *(f"    hold {result} {_KEEP}" for result in ("nx", "obsolete", "other", "refused", "timeout")),
)


def _split(url: str) -> tuple[str, int, bool]:
    """Host (with the port where it is not TLS's own), port, and whether the address is of this machine, without TLS."""
    match = _URL.fullmatch(url)
    if match is None:
        raise FallbackUrlError(
            Problem(
                "fallback",
                url,
                "the gateway would send its identity there, and it is not the URL of a Cloud Run service.",
                "pass the service's own `url`, https://… without a path.",
            )
        )
    if match[1]:
        return match[1], 443, False
    return f"{match[2]}:{match[3]}", int(match[3]), True
