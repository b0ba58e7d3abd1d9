"""Serving process: the engine's task and the HTTP server in one event loop, until a signal ends both."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

from bezel_base.loopback.asgi_guard import Bounded
from bezel_base.web_server import ServerOptions, WebServer
from bezel_simulated_vllm.api.web import Server
from bezel_simulated_vllm.configuration.logs import log, log_shutdown, traceback, uvicorn_logging
from bezel_simulated_vllm.scheduling.engine import Engine, RealClock

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp, Receive, Scope, Send

    from bezel_simulated_vllm.address import Address
    from bezel_simulated_vllm.configuration.faults import ServingFaults
    from bezel_simulated_vllm.configuration.settings import EngineSettings

_BACKLOG = 4096
_LARGEST = 32 << 20  # bytes of a body: Cloud Run's limit; the real server has no limit of its own
_WATCHDOG_SECONDS = 5.0
_CRASH_CHECK_SECONDS = 0.2


def _with_lifespan(app: ASGIApp) -> ASGIApp:
    """The application with a lifespan, so that uvicorn logs its begin and its end as the real server's does."""

    async def whole(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for event in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{event}.complete"})

    return whole


async def serve(
    settings: EngineSettings,
    address: Address,
    listener: socket.socket,
    *,
    speed: float,
    log_level: str,
    access_log: bool,
    statistics_seconds: float,
    faults: ServingFaults | None,
    outlives_engine: bool,
) -> None:
    """Serve until SIGTERM or SIGINT, or until the engine has died.

    Args:
        settings: the settings of the engine.
        address: the address of the server.
        listener: its bound socket, which listens from now on.
        speed: seconds of the engine per real second.
        log_level: uvicorn's log level.
        access_log: whether each request is logged.
        statistics_seconds: real seconds between two lines of statistics in the log.
        faults: faults injected while the server runs, None for none.
        outlives_engine: whether the server continues after its engine has died (VLLM_KEEP_ALIVE_ON_ENGINE_DEATH).

    Raises:
        UserError: another process listens at the address since the socket was bound.
    """
    uvicorn_logging(log_level, access=access_log)
    engine = Engine(settings, RealClock(speed), faults)
    api = Server(engine)
    application: ASGIApp = Bounded(api.application(), lambda _: _LARGEST, keeps_open=True)
    if faults:
        application = _with_noted_answers(application, faults)
    for name in ("tasks", "scale-out", "template"):
        log(name)
    log("listening", host=address.host, port=address.port or listener.getsockname()[1])
    log("routes")
    for path_of_route, methods in api.routes:
        log("route", path=path_of_route, methods=", ".join(methods))
    options = ServerOptions(
        backlog=_BACKLOG,
        server_header=True,
        proxy_headers=True,
        websockets=True,
        access_log=access_log,
        lifespan=True,
    )
    server = WebServer(_with_lifespan(application), [listener], options)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _stop, server, number)
    tasks = [asyncio.create_task(engine.run()), asyncio.create_task(_log_statistics(engine, statistics_seconds))]
    if not outlives_engine:
        tasks.append(asyncio.create_task(_end_with_engine(engine, server)))
    if faults:
        tasks.append(asyncio.create_task(_crash(faults)))
    try:
        await _start(server, address)
        await server.wait_ended()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _start(server: WebServer, address: Address) -> None:
    try:
        await server.start()
    except OSError as error:
        raise address.error(error) from None


def _stop(server: WebServer, number: int) -> None:
    """End the server after a signal; a second Ctrl-C waits for no request."""
    is_second = server.is_stopping
    if not is_second:
        log_shutdown()
    server.stop(cut_off=is_second and number == signal.SIGINT)


async def _end_with_engine(engine: Engine, server: WebServer) -> None:
    """Shut down once a client has got the error of the engine's death, or _WATCHDOG_SECONDS after it."""
    await engine.died.wait()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(engine.death_reported.wait(), _WATCHDOG_SECONDS)
    server.stop()


def _with_noted_answers(app: ASGIApp, faults: ServingFaults) -> ASGIApp:
    async def whole(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)
        if scope["type"] == "http":
            faults.note_answer()

    return whole


async def _crash(faults: ServingFaults) -> None:
    while not faults.crashes():  # noqa: ASYNC110 - the faults come from a file
        await asyncio.sleep(_CRASH_CHECK_SECONDS)
    traceback("RuntimeError", "can't start new thread")
    # As abrupt as a real crash: open connections are cut.
    sys.stdout.flush()
    os._exit(1)


async def _log_statistics(engine: Engine, seconds: float) -> None:
    prompt, generated, idle = 0, 0, True
    while True:
        await asyncio.sleep(seconds)
        read, written = engine.prompt_tokens - prompt, engine.generated_tokens - generated
        prompt, generated = engine.prompt_tokens, engine.generated_tokens
        running, waiting = len(engine.scheduler.running), len(engine.scheduler.waiting)
        was_idle, idle = idle, not (read or written or running or waiting)
        if idle and was_idle:
            continue
        queries = engine.metrics.value("prefix_cache_queries_total") or 1.0
        hits = engine.metrics.value("prefix_cache_hits_total") / queries
        log(
            "statistics",
            read=read / seconds,
            written=written / seconds,
            running=running,
            waiting=waiting,
            usage=engine.scheduler.pool.usage,
            hits=hits,
        )
