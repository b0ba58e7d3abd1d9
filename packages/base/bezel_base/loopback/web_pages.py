"""Requests that a web page sends to a port of this machine, recognized by the headers that its browser adds.

A browser lets any page send requests to the loopback, and reads nothing of the answers to it; a request alone can start
a paid instance. Most of them carry no `Origin`: images, scripts, styles, frames, media, links, forms by GET, `fetch`
without CORS, prefetches (Fetch, section 3.2). Pure; leaves out the user of a connection (`peer_uid`).

Refused by what a browser sends, which a page cannot change:

- `Host`: the name of another host (DNS rebinding), a text around the name, none, or several.
- `Origin` of another host, or `null`: sent with CORS, POST and WebSocket (Fetch, section 3.2).
- `Sec-Fetch-Site` (Fetch Metadata: Chrome 76, Firefox 90, Safari 16.4), without an `Origin`: everything but
  `same-origin` and `none`, which is an address that the user typed.
- `Referer` of another origin than that of `Host`, with neither of them: an older browser.
- `User-Agent: Mozilla/...` with `Accept-Language` and nothing else: an older browser, for a page that hides its name.

Programs send at most `Sec-Fetch-Mode` and `Accept-Language: *` (`fetch` of Node.js), or such a `User-Agent` without a
language (PowerShell).
"""

import functools
import ipaddress
import re
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

Headers = Sequence[tuple[bytes, bytes]]

_OWN_PAGE: Final = frozenset({"same-origin", "none"})
# No user, path, query or space: what stands around a name is read differently by each reader.
_AUTHORITY = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d*)?", re.ASCII)
_DEFAULT_PORT = re.compile(r":(?:0*80)?\Z", re.ASCII)


def foreign(headers: Headers, is_served: Callable[[str], bool] | None = None) -> str:
    """Return why a request was not meant for this machine's own programs and pages; "" if nothing says so.

    Args:
        headers: Names in lower case and values, as ASGI has them.
        is_served: Whether `HOST[:PORT]` is one that the port serves; None for the names of the loopback.
    """
    is_known = is_served or is_loopback
    hosts = _values(headers, b"host")
    if len(hosts) != 1:
        return f"The request has {len(hosts)} Host lines: send one."
    if not is_known(hosts[0]):
        return f"Host {hosts[0]!r} is not this machine's loopback: use 127.0.0.1 or localhost."
    origins = _values(headers, b"origin")
    for origin in origins:
        if not is_known(_authority(origin)):
            return f"Origin {origin!r} is not this machine's loopback: pages of other hosts have no access."
    return "" if origins else _without_origin(headers, hosts[0])


@functools.lru_cache(maxsize=64)  # clients send one host with all of their requests
def is_loopback(host: str) -> bool:
    """Whether the host of `HOST[:PORT]` is this machine.

    Any name but localhost and those below it (RFC 6761, section 6.3) may resolve elsewhere later.
    """
    match = _AUTHORITY.fullmatch(host)
    if match is None:
        return False
    # A name may end in the dot of the root (RFC 1034, section 3.1), and a socket for both families has IPv4 in IPv6.
    name = match["name"].lower()
    name = name[1:-1] if name.startswith("[") else name.removesuffix(".")
    if name.rpartition(".")[2] == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _without_origin(headers: Headers, host: str) -> str:
    sites = _values(headers, b"sec-fetch-site")
    for site in sites:
        if site.strip().lower() not in _OWN_PAGE:
            return f"Sec-Fetch-Site {site!r}: a page of another origin sent the request, and has no access."
    if sites:
        return ""
    for referer in _values(headers, b"referer"):
        if (page := _authority(referer)) and _without_default_port(page) != _without_default_port(host):
            return f"Referer {_authority(referer)!r}: a page of another origin sent the request, and has no access."
    agents, languages = _values(headers, b"user-agent"), _values(headers, b"accept-language")
    if any(agent.startswith("Mozilla/") for agent in agents) and any(one.strip() != "*" for one in languages):
        return "The browser does not say which page sent the request (Sec-Fetch-Site): use a newer one."
    return ""


def _values(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


def _without_default_port(authority: str) -> str:
    """In lower case; a client may write the port of HTTP or leave it out (RFC 9110, section 4.2.3)."""
    return _DEFAULT_PORT.sub("", authority.lower())


def _authority(url: str) -> str:
    """Host and port of a URL, "" for one without, and a text that is no host for one that cannot be read."""
    try:
        return urlsplit(url).netloc
    except ValueError:
        return "?"
