"""Life of one generation of the project: served on the daemon's sockets until the daemon stops or the project is reset.

A reset ends a cloud as a stop does and begins another one as a start does, with the same sockets and keys. Leaves out
the daemon's own start and end (`bezel_localcloud.daemon`).
"""

import asyncio
import logging
import socket
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from bezel_base.process_status import end_leftovers
from bezel_localcloud.cloud import Cloud, largest_body
from bezel_localcloud.core.paths import DEPLOYER, Endpoint
from bezel_localcloud.http.emulator import EmulatorMiddleware
from bezel_localcloud.http.serving import HttpServer
from bezel_localcloud.services.compute.vpc import FIRST_ADDRESS

log = logging.getLogger(__name__)
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_END_SECONDS = 5.0


@dataclass(frozen=True)
class Hooks:
    """What is called, in a thread of its own, once the daemon serves.

    Attributes:
        prepare: Before its endpoint file is written, so before `control.status` finds it.
        announce: After that. A reset calls `prepare` again, and not this one.
    """

    prepare: Callable[[Endpoint], None] = lambda _: None
    announce: Callable[[Endpoint], None] = lambda _: None


async def serve_generation(
    cloud: Cloud,
    listeners: Mapping[str, socket.socket],
    endpoint: Endpoint,
    hooks: Hooks,
    ended: Callable[[], Awaitable[None]],
) -> bool:
    """Serve a cloud until the daemon is to stop, or its project to be replaced; return whether it is to be replaced."""
    earlier, generation = asyncio.all_tasks(), cloud.generation
    if leftovers := end_leftovers(cloud.layout.root):
        log.warning("ended %d processes of a killed daemon", leftovers)
    cloud.store.set_setting(FIRST_ADDRESS, str(zlib.crc32(str(cloud.layout.root).encode())))
    cloud.base = endpoint.base
    cloud.prepare()
    # Their copies: a connection that comes between two generations waits until the next one accepts it.
    servers = _servers(cloud, {name: listener.dup() for name, listener in listeners.items()})
    await cloud.services.resume()
    await cloud.balancers.resume()
    cloud.jobs.resume()
    cloud.machines.resume()
    cloud.quota_use.resume()
    cloud.service_use.resume()
    cloud.scheduler.resume()
    for http in servers:
        await http.start()
    try:
        await asyncio.to_thread(hooks.prepare, endpoint)
        generation.ready = True
        if generation.number == 1:
            endpoint.write()
            log.info("ready at %s (server %s, speed %g)", cloud.base, endpoint.server, endpoint.speed)
            await asyncio.to_thread(hooks.announce, endpoint)
        await ended()
    finally:
        if not generation.reset.is_set():
            cloud.layout.endpoint.unlink(missing_ok=True)
            for listener in listeners.values():
                listener.close()
        for http in servers:
            await http.close()
        for part in (
            cloud.scheduler,
            cloud.quota_use,
            cloud.service_use,
            cloud.machines,
            cloud.nodes,
            cloud.jobs,
            cloud.balancers,
            cloud.services,
        ):
            await part.close()
        if generation.reset.is_set():
            await _end_tasks(asyncio.all_tasks() - earlier)
            _delete_all(cloud, keep=listeners)
        cloud.store.close()
    return generation.reset.is_set()


async def _end_tasks(tasks: set[asyncio.Task[object]]) -> None:
    """End what still runs of a generation, such as a request that was cut off."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_END_SECONDS)


def _delete_all(cloud: Cloud, keep: Iterable[str]) -> None:
    """Delete everything of the project; the settings of its ports and the keys stay."""
    cloud.faults.clear()
    cloud.store.clear(keep)
    cloud.layout.delete_contents()
    log.info("everything of the project was deleted")


def _servers(cloud: Cloud, listeners: Mapping[str, socket.socket]) -> list[HttpServer]:
    """One for each listener, by the setting of its port."""
    application = cloud.application()
    servers = [HttpServer(application, listeners["port"], largest_body)]
    if listener := listeners.get("emulator port"):
        token = partial(cloud.tokens.access_token, DEPLOYER, _SCOPE)
        servers.append(HttpServer(EmulatorMiddleware(application, token), listener, largest_body))
    if listener := listeners.get("tls port"):
        from bezel_localcloud.access.certificates import server_certificate  # late: a start without https is faster

        _, chain, key = server_certificate(cloud.layout.certificates, cloud.pace.now())
        servers.append(HttpServer(application, listener, largest_body, (chain, key)))
    return servers
