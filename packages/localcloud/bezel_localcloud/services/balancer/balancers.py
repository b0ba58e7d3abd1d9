"""Load balancers of a project: a listening socket for each forwarding rule, as the resources have it at this moment.

A socket stays open while its rule's address, port and kind of proxy stay; anything else changes under it, and requests
under way end as they began. Owns sockets, TLS by name, and what a command shows. Leaves out requests (front.py).
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bezel_base.loopback.listeners import listen, listen_on_loopback
from bezel_base.loopback.web_pages import is_loopback
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.http.serving import HttpServer
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.balancer.backends import Backends
from bezel_localcloud.services.balancer.front import Front
from bezel_localcloud.services.load_balancing.certificates import MANAGED, MANAGER_CERTIFICATE, advance
from bezel_localcloud.services.load_balancing.kinds import KINDS
from bezel_localcloud.services.load_balancing.references import row_kind
from bezel_localcloud.services.load_balancing.routes import Listener, listeners

if TYPE_CHECKING:
    from bezel_localcloud.services.balancer.certificates import DomainCertificates

log = logging.getLogger(__name__)
_RECORDS = "dns/rrsets"
_WATCHED = (
    *(kind.permissions for kind in KINDS),
    *("certificatemanager/certificates", "certificatemanager/certificateMapEntries", _RECORDS),
)
_ANY_LENGTH = 1 << 62  # the ingress of the service refuses a body that is too long
Key = tuple[str, int, bool]


class _Open:
    """A listening socket and what it serves."""

    def __init__(self, front: Front, server: HttpServer) -> None:
        self.front, self.server = front, server


class Balancers:
    """All load balancers of a project."""

    def __init__(self, cloud: Context) -> None:
        self._cloud = cloud
        self._backends = Backends(cloud)
        self._open: dict[Key, _Open] = {}
        self._names: frozenset[str] = frozenset()
        self._certificates: DomainCertificates | None = None
        self._changed = asyncio.Event()
        self._work: asyncio.Task[None] | None = None

    async def resume(self) -> None:
        """Open the sockets of the store's rules, and follow every change from now on."""
        self._cloud.store.watch(_WATCHED, self._changed.set)
        await self._follow_once()
        self._work = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Close all sockets."""
        if self._work:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        await asyncio.gather(*(opened.server.close() for opened in self._open.values()))

    def move_clients(self, place: str) -> None:
        """Take clients to be in a region or a part of the world from now on."""
        self._backends.move_clients(place)

    def description(self) -> Json:
        """Where the balancers listen, and which regions they use."""
        return {
            "place": self._backends.place,
            "authority": str(self._cloud.layout.balancer_authority),
            "balancers": [self._json(opened) for opened in self._open.values()],
        }

    def _json(self, opened: _Open) -> Json:
        listener = opened.front.listener
        used = {name: self._backends.state(backend).shares(backend) for name, backend in listener.table.items()}
        return {
            "address": listener.address,
            "port": listener.port,
            "scheme": "https" if listener.secure else "http",
            "at": opened.server.address,
            "domains": sorted({domain for _, name in listener.certificates for domain in self._domains(name)}),
            "regions": {name.rpartition("/")[2]: shares for name, shares in used.items()},
        }

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            try:
                await self._follow_once()
            except Exception:
                log.exception("load balancers do not follow the resources")

    async def _follow_once(self) -> None:
        self._changed.clear()
        wanted = {(each.address, each.port, each.secure): each for each in listeners(self._cloud.store)}
        self._names = frozenset(self._served_names())
        for key in [key for key in self._open if key not in wanted]:
            await self._open.pop(key).server.close()
        for key, listener in wanted.items():
            if key in self._open:
                self._open[key].front.listener = listener
            else:
                self._open[key] = await self._start(listener)

    async def _start(self, listener: Listener) -> _Open:
        front = Front(self._cloud, self._backends, listener)
        bound = self._bind(listener.address, listener.port)
        context = self._context(front) if listener.secure else None
        server = HttpServer(front, bound, lambda _: _ANY_LENGTH, context=context, is_served=self._is_served)
        await server.start()
        log.info("load balancer %s:%d is served at %s", listener.address, listener.port, server.address)
        return _Open(front, server)

    def _bind(self, address: str, port: int) -> socket.socket:
        """A socket at an address and port, or at the nearest to it that this user and machine allow, which is kept."""
        key = f"balancer {address}:{port}"
        kept = int(self._cloud.store.setting(key) or 0)
        bound = None
        for wanted in (port, kept, 0):
            with contextlib.suppress(OSError):
                bound = listen(address, wanted)
                break
        bound = bound or listen_on_loopback(kept)
        self._cloud.store.set_setting(key, str(bound.getsockname()[1]))
        return bound

    def _context(self, front: Front) -> ssl.SSLContext:
        """The context of a listener, which takes the certificate by the name that a client asks for."""
        # Late: most projects have no balancer.
        from bezel_localcloud.services.balancer.certificates import DomainCertificates, server_context

        if self._certificates is None:
            self._certificates = DomainCertificates(self._cloud.layout.balancer_authority)
            self._certificates.prepare(self._cloud.pace.now())
        certificates = self._certificates

        def choose(connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> int | None:
            domains = self._certificate_of(front.listener, (name or "").lower())
            if not domains:
                return ssl.ALERT_DESCRIPTION_HANDSHAKE_FAILURE
            connection.context = certificates.context(domains, self._cloud.pace.now())
            return None

        context = server_context()
        context.sni_callback = choose
        return context

    def _certificate_of(self, listener: Listener, name: str) -> list[str]:
        """Domains of the certificate for a name; none while it is not active, as Google then ends the handshake."""
        advance(self._cloud)
        active = [(host, self._domains(each)) for host, each in listener.certificates if self._is_active(each)]
        by_host = {host: domains for host, domains in active if host}
        wildcard = f"*.{name.partition('.')[2]}"
        if by_host:
            primary = next((domains for host, domains in active if not host), [])
            return by_host.get(name) or by_host.get(wildcard) or primary
        fitting = [domains for _, domains in active if name in domains or wildcard in domains]
        return next(iter([*fitting, *(domains for _, domains in active)]), [])

    def _is_active(self, certificate: str) -> bool:
        return bool((self._cloud.store.get(row_kind(certificate), certificate) or {}).get("_active"))

    def _domains(self, certificate: str) -> list[str]:
        row = self._cloud.store.get(row_kind(certificate), certificate) or {}
        return [domain.rstrip(".") for domain in (row.get("managed") or {}).get("domains", [])]

    def _served_names(self) -> Iterator[str]:
        """Names that requests may be for: of certificates, of host rules and of DNS records."""
        store = self._cloud.store
        for kind in (MANAGED, MANAGER_CERTIFICATE):
            for _, row in store.rows(kind):
                yield from (row.get("managed") or {}).get("domains", [])
        for _, row in store.rows("urlMaps"):
            for rule in row.get("hostRules", []):
                yield from (host for host in rule.get("hosts", []) if host != "*")
        yield from (row["name"].rstrip(".") for _, row in store.rows(_RECORDS))

    def _is_served(self, host: str) -> bool:
        name = host.rpartition(":")[0] or host
        return (
            is_loopback(host)
            or name.lower() in self._names
            or any(name.lower().endswith(pattern[1:]) for pattern in self._names if pattern.startswith("*"))
        )
