"""Simulated servers for these tests: in the test's own process on a real socket, or as a container would run."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING
from unittest.mock import patch

import httpx
import pytest
import uvicorn

from bezel_base.loopback.listeners import free_port
from bezel_base.loopback.plain_http import NO_TLS
from bezel_simulated_vllm import command
from bezel_simulated_vllm.api.web import Server
from bezel_simulated_vllm.configuration.faults import ServingFaults
from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.configuration.settings import make_settings
from bezel_simulated_vllm.release import DEFAULT_RELEASE
from bezel_simulated_vllm.scheduling.engine import Engine, RealClock
from bezel_simulated_vllm.synthetic_weights import model_files
from simulated_vllm_support.process import MODEL
from simulated_vllm_support.servers import CONFIGURATIONS, real_configuration, real_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bezel_simulated_vllm.configuration.settings import EngineSettings


class _Server(uvicorn.Server):
    """A server that ends at once: uvicorn's own looks every tenth of a second whether it should."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ended = asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)  # the headers of all responses
        await self._ended.wait()

    def end(self, loop: asyncio.AbstractEventLoop) -> None:
        """End it from another thread."""
        self.should_exit = True
        loop.call_soon_threadsafe(self._ended.set)


@pytest.fixture(scope="session")
def mount(tmp_path_factory) -> Path:
    """What lies below /mnt/models: a tiny model and its assistant, and made-up files with real sizes."""
    directory = tmp_path_factory.mktemp("models")
    _write(directory / "tiny", MODEL)
    _write(directory / "tiny-assistant", {"model_type": "gemma4_assistant", "text_config": MODEL})
    for name, model in (
        ("qat", "gemma-4-12b-it-qat-w4a16"),
        ("bf16", "gemma-4-12b-it"),
        ("moe", "gemma-4-26b-a4b-it"),
        ("assistant", "google/gemma-4-12B-it-assistant"),
    ):
        (directory / name).mkdir()
        for file, content in model_files(model).items():
            (directory / name / file).write_bytes(content)
    return directory


def _write(directory: Path, config: dict) -> None:
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "model.safetensors").write_bytes(b"\0" * 400_000)


@pytest.fixture(scope="session")
def environment(mount):
    """The environment of an instance with an L4."""

    def make(**hardware: object) -> dict[str, str]:
        return {
            "LOCALCLOUD_MOUNTS": json.dumps({"/mnt/models": str(mount)}),
            "LOCALCLOUD_HARDWARE": json.dumps(hardware),
            "LOCALCLOUD_LISTEN": "127.0.0.1:0",
            "LOCALCLOUD_SPEED": "100000",
        }

    return make


@pytest.fixture(scope="session")
def settings(environment):
    """Settings from a command line, as at start."""

    def make(
        *arguments: str, variables: dict[str, str] | None = None, release: str = DEFAULT_RELEASE, **hardware: object
    ):
        parsed = parse(arguments, release=release)
        return make_settings(parsed, machine_from_environment(environment(**hardware)), variables or {})

    return make


@pytest.fixture(scope="session")
def serve(settings):
    """Start a server in this process: `with serve("/mnt/models/tiny", ...) as client`."""

    @contextlib.contextmanager
    def run(
        *arguments: str,
        speed: float = 1.0,
        faults: ServingFaults | None = None,
        change: Callable[[EngineSettings], EngineSettings] = lambda made: made,
        **hardware: object,
    ) -> Iterator[httpx.Client]:
        engine = Engine(change(settings(*arguments, **hardware)), RealClock(speed), faults)
        config = uvicorn.Config(
            Server(engine).application(), "127.0.0.1", 0, log_config=None, lifespan="off", callback_notify=None
        )
        server = _Server(config)
        loop = asyncio.new_event_loop()

        async def main() -> None:
            task = asyncio.create_task(engine.run())
            await server.serve()
            task.cancel()

        def run_server() -> None:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(main())

        thread = threading.Thread(target=run_server, daemon=True)
        thread.start()
        while not server.started:
            thread.join(0.005)
            assert thread.is_alive()
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, verify=NO_TLS) as client:
                yield client
        finally:
            server.end(loop)
            thread.join(60)

    return run


@pytest.fixture(scope="session")
def servers(serve, tmp_path_factory):
    """The client of a server by the name of its configuration: `servers("plain")`; each is started once.

    With BEZEL_VLLM_URL that of a real vLLM, where its configuration is the one asked for.
    """
    started: dict[str, httpx.Client] = {}

    def start_simulated(name: str) -> contextlib.AbstractContextManager[httpx.Client]:
        row, faults = CONFIGURATIONS[name], None
        if row.dead:
            orders = tmp_path_factory.mktemp("faults") / "faults.json"
            orders.write_text('[{"kind": "engine-death"}]')
            faults = ServingFaults(orders, time.monotonic)
        arguments = (argument.format(assistant="/mnt/models/tiny-assistant") if "{a" in argument else argument
                     for argument in row.arguments)  # fmt: skip
        return serve("/mnt/models/tiny", *arguments, speed=200.0, faults=faults)

    with contextlib.ExitStack() as stack:

        def client(name: str) -> httpx.Client:
            if real_url() and name != real_configuration():
                pytest.skip(f"needs a server of the configuration {name!r}")
            if name not in started:
                server = start_simulated(name) if not real_url() else httpx.Client(base_url=real_url(), timeout=60)
                started[name] = stack.enter_context(server)
                started[name].headers.update(CONFIGURATIONS[name].headers)
                if CONFIGURATIONS[name].dead:
                    end_engine(started[name])
            return started[name]

        yield client


def end_engine(client: httpx.Client) -> None:
    """Kill the engine: a real one by its process, a simulated one by the first call that it takes."""
    if real_url():
        os.kill(int(os.environ["BEZEL_VLLM_ENGINE_PID"]), signal.SIGKILL)
    deadline = time.monotonic() + 60
    while client.get("/health").status_code == 200:
        assert time.monotonic() < deadline
        client.post("/v1/completions", json={"prompt": "a", "max_tokens": 2})


@pytest.fixture(scope="session")
def container(environment):
    """Run `python -m bezel_simulated_vllm` to its end: exit status, standard output, standard error.

    In this process, and with BEZEL_VLLM_PROGRAM as that program's `serve`, with its own model.
    """
    real = os.environ.get("BEZEL_VLLM_PROGRAM")

    def run(*arguments: str, variables: dict[str, str] | None = None, **hardware: object):
        env = {**os.environ, **environment(**hardware), **(variables or {})}
        if not real:
            return run_here(arguments, env)
        # A real one asks for its port before anything else, and another program may have the default one.
        port = [] if any(word.startswith("--port") for word in arguments) else [f"--port={free_port()}"]
        program = [real, "serve", *arguments, *port]
        return subprocess.run(program, env=env, capture_output=True, text=True, timeout=280, check=False)

    return run


def run_here(arguments: Sequence[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a container's command in this process, which takes a tenth of what a start of its own takes.

    Raises:
        TimeoutError: It did not end: it serves.
    """
    out, errors, codes = io.StringIO(), io.StringIO(), []

    def end() -> None:
        try:
            codes.append(command.run(arguments))
        except SystemExit as ended:  # of the parser
            codes.append(ended.code)

    thread = threading.Thread(target=end, daemon=True)
    with (
        patch.dict(os.environ, environ, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        thread.start()
        thread.join(60)
    if thread.is_alive():
        raise TimeoutError(f"the server did not end:\n{out.getvalue()}{errors.getvalue()}")
    (code,) = codes
    return subprocess.CompletedProcess([*arguments], code, out.getvalue(), errors.getvalue())
