"""The daemon: one event loop that serves the APIs and the ingresses of services until it is stopped."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bezel_base.errors import Problem, UserError
from bezel_base.loopback.listeners import listen, listen_error, listen_on_loopback
from bezel_base.text.shell import shell_word
from bezel_localcloud import PROGRAM
from bezel_localcloud.cloud import Cloud
from bezel_localcloud.core.clock import InstanceTiming, PlatformClock
from bezel_localcloud.core.files.locks import hold_lock
from bezel_localcloud.core.files.logfile import LogFile
from bezel_localcloud.core.paths import Endpoint, Paths, engine_of, fingerprint
from bezel_localcloud.node.machine import Nodes
from bezel_localcloud.processes.parent_end import called_at_end_of
from bezel_localcloud.project_life import Hooks, serve_generation
from bezel_localcloud.services.cloud_run.runtime.container_command import (
    Command,
    ContainerLaunch,
    real,
    simulated_server,
)

log = logging.getLogger(__name__)
_LOCK_SECONDS = 0.2
_CHECK_SECONDS = 1.0  # between two checks that the directory still exists


class AlreadyRunningError(UserError):
    """Another daemon serves this directory."""


@dataclass(frozen=True)
class Ports:
    """The ports of the APIs.

    Attributes:
        port: Port over http; 0 for the directory's last one if it is free, else any.
        emulator: Whether there is one for clients that send no credentials.
        tls: Whether there is one over https.
    """

    port: int = 0
    emulator: bool = False
    tls: bool = False


def run(
    directory: Path,
    *,
    server: str = "sim",
    speed: float = 60.0,
    idle_seconds: float = 900.0,
    port: int = 0,
    emulator: bool = False,
    default_network: bool = True,
    tls: bool = False,
    parent: int = 0,
    hooks: Hooks | None = None,
    program: str = PROGRAM,
) -> None:
    """Serve a directory with a simulated or a real vLLM behind each revision, until SIGTERM, SIGINT or SIGHUP.

    Args:
        directory: The data directory.
        server: "sim" or "vllm".
        speed: Factor by which the platform's waits, and loading by a simulated server, are shortened.
        idle_seconds: Seconds that an idle instance keeps running.
        port: Port of the APIs; 0 for the directory's last one if it is free, else any.
        emulator: Whether a second port serves clients that send no credentials, as the deployer.
        default_network: Whether a new directory's project has the network `default`.
        tls: Whether another port serves the APIs over https.
        parent: Process with whose end it ends too; 0 for none.
        hooks: What is called once it serves.
        program: The program that stops another daemon, as a user types it.

    Raises:
        AlreadyRunningError: If another daemon holds the directory.
        UserError: If the port cannot be listened on.
    """
    if server == "sim":
        launcher, timing = simulated_server, InstanceTiming(speed, idle_seconds)
    else:  # only the simulated engine starts faster; a real one needs its own time
        launcher, timing = real, InstanceTiming(1.0, idle_seconds, machine_seconds=0.0)
    ports = Ports(port, emulator=emulator, tls=tls)
    serve(
        directory,
        launcher,
        server=server,
        speed=speed,
        timing=timing,
        ports=ports,
        default_network=default_network,
        parent=parent,
        hooks=hooks,
        program=program,
    )


def serve(
    directory: Path,
    launcher: Callable[[ContainerLaunch], Command],
    *,
    server: str,
    speed: float,
    timing: InstanceTiming,
    ports: Ports | None = None,
    default_network: bool = True,
    parent: int = 0,
    hooks: Hooks | None = None,
    program: str = PROGRAM,
) -> None:
    """As `run`, with the launcher, which turns a container into the command that is started for it, and the timing."""
    os.umask(0o077)  # files written from here on, by an instance too, are readable by the owner only
    layout = Paths(directory.resolve())
    layout.create()
    # A killed daemon's lock may outlive it for a moment: one that stays held is another daemon's.
    with hold_lock(layout.daemon_lock, _LOCK_SECONDS, partial(_already_running, layout, program)):
        lock = layout.daemon_lock.stat()
        # The endpoint file of a killed daemon is stale.
        layout.endpoint.unlink(missing_ok=True)
        stream = logging.StreamHandler(LogFile(layout.daemon_log))
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=[stream]
        )
        # The application reports its own failures; this logger would add a traceback for every response cut off.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        make_cloud = partial(
            Cloud,
            layout,
            PlatformClock(speed),
            launcher,
            timing,
            lambda cloud: Nodes(cloud, launcher, timing, cloud.services.subnetwork_of),
            default_network=default_network,
        )
        cloud = make_cloud()
        wanted = ports or Ports()
        listeners = {"port": _listener(cloud, "port", wanted.port)}
        for setting, is_wanted in (("emulator port", wanted.emulator), ("tls port", wanted.tls)):
            if is_wanted:
                listeners[setting] = _listener(cloud, setting)
        asyncio.run(_run(cloud, make_cloud, listeners, server, hooks or Hooks(), lock, parent))


def _already_running(layout: Paths, program: str) -> AlreadyRunningError:
    running = Endpoint.read(layout.root)
    which = f" (process {running.pid}, {running.base})" if running else ""
    consequence = f"another localcloud daemon serves it{which}, so no second one was started."
    repair = f"stop that one (`{program} stop --dir {shell_word(layout.root)}`), or use another directory (--dir)."
    return AlreadyRunningError(Problem(str(layout.root), None, consequence, repair))


def _listener(cloud: Cloud, setting: str, port: int = 0) -> socket.socket:
    """A listening socket of the APIs, at the requested port or at the one of the last time, which a setting keeps.

    Raises:
        UserError: If the requested port cannot be listened on.
    """
    try:
        kept = int(cloud.store.setting(setting) or 0)
        listener = listen("127.0.0.1", port) if port else listen_on_loopback(kept)
    except OSError as error:
        raise listen_error(error, port) from None
    cloud.store.set_setting(setting, str(listener.getsockname()[1]))
    return listener


async def _run(
    cloud: Cloud,
    make_cloud: Callable[..., Cloud],
    listeners: Mapping[str, socket.socket],
    server: str,
    hooks: Hooks,
    lock: os.stat_result,
    parent: int,
) -> None:
    """Serve one generation of the project after the other until the daemon is to stop."""
    stop, layout = asyncio.Event(), cloud.layout
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    endpoint = _endpoint(cloud, listeners, server)
    try:
        with called_at_end_of(parent, stop.set):
            while await serve_generation(cloud, listeners, endpoint, hooks, partial(_wait_for_end, stop, cloud, lock)):
                cloud = make_cloud(generation=cloud.generation.number + 1)
    finally:
        layout.endpoint.unlink(missing_ok=True)
        log.info("stopped")


def _endpoint(cloud: Cloud, listeners: Mapping[str, socket.socket], server: str) -> Endpoint:
    """Where clients find the daemon, which is the same in each generation."""
    addresses = {name: f"127.0.0.1:{listener.getsockname()[1]}" for name, listener in listeners.items()}
    emulator, tls = (
        f"{scheme}://{addresses[name]}" if name in addresses else ""
        for scheme, name in (("http", "emulator port"), ("https", "tls port"))
    )
    return Endpoint(
        cloud.layout.root,
        os.getpid(),
        f"http://{addresses['port']}",
        server,
        cloud.pace.speed,
        engine_of(server),
        fingerprint(),
        emulator,
        tls,
    )


async def _wait_for_end(stop: asyncio.Event, cloud: Cloud, lock: os.stat_result) -> None:
    """Return when the daemon is to stop, or the project to be replaced.

    The daemon exits at once if its directory is gone, since no client could stop it then.
    """
    events = [asyncio.create_task(event.wait()) for event in (stop, cloud.generation.reset)]
    try:
        while not (await asyncio.wait(events, timeout=_CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED))[0]:
            try:
                exists = os.path.samestat(lock, cloud.layout.daemon_lock.stat())
            except OSError:
                exists = False
            if not exists:
                log.warning("%s was deleted: the daemon and every process that it started end", cloud.layout.root)
                os._exit(1)  # no data is left to save, and the guard of each process ends it
    finally:
        for event in events:
            event.cancel()
