"""The daemon: one event loop that serves the APIs and the ingresses of services until it is stopped."""

import asyncio
import contextlib
import logging
import os
import signal
import zlib
from collections.abc import Callable
from pathlib import Path

from bezel.errors import Problem, UserError
from bezel.localcloud.cloud import Cloud, largest_body
from bezel.localcloud.core.clock import InstanceTiming, PlatformClock
from bezel.localcloud.core.locks import locked
from bezel.localcloud.core.logfile import LogFile
from bezel.localcloud.core.paths import Endpoint, Paths, engine_of, fingerprint
from bezel.localcloud.http.serving import HttpServer
from bezel.localcloud.node.machine import Nodes
from bezel.localcloud.processes.process_status import end_leftovers
from bezel.localcloud.services.cloud_run.runtime.container_command import Command, Container
from bezel.localcloud.services.cloud_run.runtime.ingress import listen
from bezel.localcloud.services.compute.vpc import FIRST_ADDRESS

log = logging.getLogger(__name__)
_LOCK_SECONDS = 0.2
_CHECK_SECONDS = 1.0  # between two checks that the directory still exists


class AlreadyRunningError(UserError):
    """Another daemon serves this directory."""


def serve(
    directory: Path, launcher: Callable[[Container], Command], *, server: str, speed: float, timing: InstanceTiming
) -> None:
    """Serve a directory until SIGTERM or SIGINT.

    Args:
        directory: The data directory.
        launcher: Turns a container into the command that is started for it.
        server: "sim" or "vllm", reported to the clients.
        speed: Factor by which the platform's waits are shortened.
        timing: How instances start, idle and queue.

    Raises:
        AlreadyRunningError: If another daemon holds the directory.
    """
    os.umask(0o077)  # files written from here on, by an instance too, are readable by the owner only
    layout = Paths(directory.resolve())
    layout.create()
    text, repair = "another localcloud daemon serves it.", "stop that daemon first, or use another directory."
    refusal = AlreadyRunningError(Problem(str(layout.root), None, text, repair))
    # A status check holds the lock for a moment: a lock that stays held is another daemon's.
    with locked(layout.daemon_lock, _LOCK_SECONDS, refusal):
        lock = layout.daemon_lock.stat()
        # The endpoint file of a killed daemon is stale.
        layout.endpoint.unlink(missing_ok=True)
        stream = logging.StreamHandler(LogFile(layout.daemon_log))
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=[stream]
        )
        # The application reports its own failures; this logger would add a traceback for every response cut off.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        asyncio.run(_run(layout, launcher, server, speed, timing, lock))


async def _run(
    layout: Paths,
    launcher: Callable[[Container], Command],
    server: str,
    speed: float,
    timing: InstanceTiming,
    lock: os.stat_result,
) -> None:
    stop, code = asyncio.Event(), fingerprint()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if ended := end_leftovers(layout.root):
        log.warning("ended %d processes of a killed daemon", ended)
    cloud = Cloud(
        layout,
        PlatformClock(speed),
        launcher,
        timing,
        lambda cloud: Nodes(cloud, launcher, timing, cloud.services.subnetwork_of),
    )
    cloud.store.set_setting(FIRST_ADDRESS, str(zlib.crc32(str(layout.root).encode())))
    listener = listen(int(cloud.store.setting("port") or 0))
    port = listener.getsockname()[1]
    cloud.store.set_setting("port", str(port))
    cloud.base = f"http://127.0.0.1:{port}"
    cloud.prepare()
    http = HttpServer(cloud.application(), listener, largest_body)
    await cloud.services.resume()
    cloud.jobs.resume()
    cloud.machines.resume()
    cloud.quota_use.resume()
    await http.start()
    endpoint = Endpoint(layout.root, os.getpid(), cloud.base, server, speed, engine_of(server), code)
    endpoint.write()
    log.info("ready at %s (server %s, speed %g)", cloud.base, server, speed)
    await _ended(stop, layout, lock)
    layout.endpoint.unlink(missing_ok=True)
    for part in (http, cloud.quota_use, cloud.machines, cloud.nodes, cloud.jobs, cloud.services):
        await part.close()
    cloud.store.close()
    log.info("stopped")


async def _ended(stop: asyncio.Event, layout: Paths, lock: os.stat_result) -> None:
    """Return when the daemon is to stop; exit at once if its directory is gone, since no client could stop it then."""
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _CHECK_SECONDS)
        try:
            exists = os.path.samestat(lock, layout.daemon_lock.stat())
        except OSError:
            exists = False
        if not exists:
            log.warning("%s was deleted: the daemon and every process that it started end", layout.root)
            os._exit(1)  # no data is left to save, and the guard of each process ends it
