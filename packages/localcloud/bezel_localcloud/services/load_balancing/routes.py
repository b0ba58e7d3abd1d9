"""Routing table of the load balancers: from the stored resources to what a proxy needs for a request. Pure.

Owns the table and the choice of a backend service for a host and a path. Leaves out connections, health and the choice
of a region: that is the proxy's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.store import Store
from bezel_localcloud.services.load_balancing.references import MANAGER


@dataclass(frozen=True)
class Region:
    """A serverless group of a backend service: a region and the Cloud Run service, or the mask, that it leads to."""

    name: str
    service: str
    tag: str
    url_mask: str
    capacity: float


@dataclass(frozen=True)
class Backend:
    """A backend service: its row and its regions."""

    name: str
    row: Json
    regions: tuple[Region, ...]


@dataclass(frozen=True)
class Route:
    """Where requests go: to backend services by weight, or to another URL.

    Attributes:
        backends: (backend service, weight), of which the weights' sum is above 0.
        redirect: `urlRedirect` of the rule, {} for none.
        action: `routeAction` of the rule, {} for none.
    """

    backends: tuple[tuple[Backend, int], ...] = ()
    redirect: Json = field(default_factory=dict)
    action: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Listener:
    """An address and port with all that a proxy needs to serve it.

    Attributes:
        certificates: Names of the certificates that the proxy has, those of a certificate map by their host names.
        url_map: Row of the URL map.
        table: The backend services by name.
    """

    address: str
    port: int
    secure: bool
    certificates: tuple[tuple[str, str], ...]
    url_map: Json
    table: dict[str, Backend]

    def route(self, host: str, path: str, headers: Mapping[str, str] = MappingProxyType({})) -> Route:
        """Where a request for a host (without a port) and a path goes; names of headers are in lower case."""
        matcher = _matcher(self.url_map, host)
        return self._route(_rule(matcher, path, headers) or matcher)

    def _route(self, part: Json) -> Route:
        action = part.get("routeAction") or part.get("defaultRouteAction") or {}
        redirect = part.get("urlRedirect") or part.get("defaultUrlRedirect") or {}
        weighted = [
            (each["backendService"], each.get("weight", 0)) for each in action.get("weightedBackendServices", [])
        ]
        single = part.get("service") or part.get("defaultService") or ""
        named = weighted or ([(single, 1)] if single else [])
        return Route(
            tuple((self.table[name], weight) for name, weight in named if name in self.table), redirect, action
        )


def listeners(store: Store) -> Iterator[Listener]:
    """Every listener of the project, one a forwarding rule."""
    table = {name: _backend(store, name, row) for name, row in store.rows("backendServices")}
    for _, rule in store.rows("globalForwardingRules"):
        secure = "/targetHttpsProxies/" in rule["target"]
        proxy = store.get("targetHttpsProxies" if secure else "targetHttpProxies", rule["target"]) or {}
        url_map = store.get("urlMaps", proxy.get("urlMap", "")) or {}
        port = int(rule["portRange"].partition("-")[0])
        yield Listener(rule["IPAddress"], port, secure, tuple(_certificates(store, proxy)), url_map, table)


def _backend(store: Store, name: str, row: Json) -> Backend:
    regions = []
    for backend in row.get("backends", []):
        target = (store.get("regionNetworkEndpointGroups", backend["group"]) or {}).get("cloudRun", {})
        region = backend["group"].split("/")[3]
        service, tag, mask = (target.get(part, "") for part in ("service", "tag", "urlMask"))
        regions.append(Region(region, service, tag, mask, float(backend.get("capacityScaler", 1))))
    return Backend(name, row, tuple(regions))


def _certificates(store: Store, proxy: Json) -> Iterator[tuple[str, str]]:
    """(host name, or "" for any; certificate) of each certificate that a proxy has."""
    link = proxy.get("certificateMap", "").removeprefix(MANAGER)
    if not link:
        yield from (("", name.removeprefix(MANAGER)) for name in proxy.get("sslCertificates", []))
    for entry, row in store.rows("certificatemanager/certificateMapEntries") if link else ():
        if entry.startswith(f"{link}/"):
            yield from ((row.get("hostname", ""), name) for name in row.get("certificates", []))


def _matcher(url_map: Json, host: str) -> Json:
    """The path matcher of a host: its own, that of its longest wildcard, that of "*", else the map itself."""
    hosts = {pattern: rule["pathMatcher"] for rule in url_map.get("hostRules", []) for pattern in rule.get("hosts", [])}
    fitting = [
        pattern for pattern in hosts if pattern == host or (pattern.startswith("*") and host.endswith(pattern[1:]))
    ]
    if not fitting:
        return url_map
    best = max(fitting, key=lambda pattern: (pattern == host, len(pattern)))
    return next(each for each in url_map["pathMatchers"] if each["name"] == hosts[best])


def _rule(matcher: Json, path: str, headers: Mapping[str, str]) -> Json | None:
    """The rule of a request: the first route rule by priority that fits, or the path rule with the longest path."""
    for rule in sorted(matcher.get("routeRules", []), key=lambda each: int(each.get("priority", 0))):
        if any(_fits(match, path, headers) for match in rule.get("matchRules", [{}])):
            return dict(rule)
    fitting = [
        (pattern == path, len(pattern), rule)
        for rule in matcher.get("pathRules", [])
        for pattern in rule.get("paths", [])
        if path == pattern or (pattern.endswith("/*") and f"{path}/".startswith(pattern[:-1]))
    ]
    return max(fitting, key=lambda each: each[:2])[2] if fitting else None


def _fits(match: Json, path: str, headers: Mapping[str, str]) -> bool:
    full, prefix = match.get("fullPathMatch", ""), match.get("prefixMatch", "")
    if match.get("ignoreCase"):
        path, full, prefix = path.lower(), full.lower(), prefix.lower()
    on_path = (not full or path == full) and path.startswith(prefix)
    return on_path and all(_has_header(each, headers) for each in match.get("headerMatches", []))


def _has_header(match: Json, headers: Mapping[str, str]) -> bool:
    value = headers.get(match["headerName"].lower())
    wanted = [
        value == match.get("exactMatch", value),
        value is not None and value.startswith(match.get("prefixMatch", "")),
        value is not None and value.endswith(match.get("suffixMatch", "")),
    ]
    present = value is not None and all(wanted)
    return present != bool(match.get("invertMatch"))
