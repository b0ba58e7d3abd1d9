"""The command `simulated-vllm [--release NAME] [serve] ARG...`: `vllm serve ARG...` on a machine without a GPU.

Environment, beside vLLM's own: LOCALCLOUD_LISTEN (host:port, or unix:PATH:PORT, in place of --host/--port),
LOCALCLOUD_RELEASE (see `release.py`), LOCALCLOUD_HARDWARE and LOCALCLOUD_MOUNTS (see `hardware.py`), LOCALCLOUD_SPEED
(divides start-up times), LOCALCLOUD_SERVING_SPEED (divides the engine's step times), LOCALCLOUD_START_REPORT (number of
an open file to which the simulated seconds of the start are written), LOCALCLOUD_FAULTS (see `faults.py`).
"""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.process_end import collect_seldom, skip_last_collection
from bezel_simulated_vllm.address import Address, listen_address
from bezel_simulated_vllm.configuration import faults
from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.release import answering_release, take_release

if TYPE_CHECKING:
    import argparse
    import socket
    from collections.abc import Callable, Mapping, Sequence

    from bezel_simulated_vllm.configuration.hardware import SimulatedMachine
    from bezel_simulated_vllm.configuration.settings import EngineSettings

_RUST = "VLLM_USE_RUST_FRONTEND"
# Its default, which vLLM also takes for a value that is not above 0 (vllm/envs.py).
_STATISTICS, _DEFAULT_STATISTICS_SECONDS = "VLLM_LOG_STATS_INTERVAL", 10.0
_INTERRUPTED = 128 + signal.SIGINT


@dataclass(frozen=True)
class _Simulation:
    """What the environment says of the simulation."""

    speed: float
    serving_speed: float
    faults: faults.StartFaults
    machine: SimulatedMachine


def main() -> int:
    """Run `simulated-vllm` with the arguments of this process; return its exit status.

    A first word `serve` is left out, so that each command line of `vllm serve` works with the other program's name.
    """
    skip_last_collection()
    collect_seldom()
    try:
        release, arguments = take_release(sys.argv[1:], dict(os.environ))
    except UserError as error:
        return _refuse(error)
    if arguments[:1] in (["-v"], ["--version"]):
        from importlib.metadata import version

        sys.stdout.write(f"simulated-vllm {version('bezel-simulated-vllm')} (vLLM {release})\n")
        return 0
    try:
        return _run(arguments[1:] if arguments[:1] == ["serve"] else arguments, release)
    except KeyboardInterrupt:  # of the start; the server itself ends with status 0
        return _INTERRUPTED


def run(arguments: Sequence[str]) -> int:
    """Start, serve, and return the exit status: the real server's, or 2 where the simulation cannot do what is wanted.

    Args:
        arguments: the arguments of `vllm serve`, and `--release NAME` among them where no variable names it.
    """
    try:
        release, rest = take_release(list(arguments), dict(os.environ))
    except UserError as error:
        return _refuse(error)
    return _run(rest, release)


def _run(arguments: Sequence[str], release: str) -> int:
    environment = dict(os.environ)
    answering_release.set(release)  # for the log of the start
    try:
        simulation = _simulation(environment)
        options = parse(arguments, simulation.faults.unknown, release)
        _check_program(options, environment)
        _check_model(options, simulation.machine, environment)
        address = _address(environment, options)
    except UserError as error:
        return _refuse(error)
    try:
        # As the real server: a taken port is reported before the start. The socket file appears when it serves.
        listener = None if address.path else address.bind()
        return _start_and_serve(options, simulation, address, listener, environment)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _refuse(error: UserError) -> int:
    """Print what the simulation cannot do; return the exit status."""
    sys.stderr.write(f"{error}\n")
    return 2


def _start_and_serve(
    options: argparse.Namespace,
    simulation: _Simulation,
    address: Address,
    listener: socket.socket | None,
    environment: Mapping[str, str],
) -> int:
    phases: list[float] = []

    def sleep(seconds: float) -> None:
        phases.append(seconds)
        time.sleep(seconds / simulation.speed)

    from bezel_simulated_vllm.api.validation.recorded import check_rules
    from bezel_simulated_vllm.startup import start  # late: a refused command line and the help need no engine

    check_rules(options.release)

    try:
        settings = start(options, simulation.machine, environment, sleep, simulation.faults)
    except StartError as failure:
        return failure.status
    if report := environment.get("LOCALCLOUD_START_REPORT"):
        os.write(int(report), f"{sum(phases):.1f}".encode())
    while simulation.faults.never_listens:
        signal.pause()  # a signal that ends the process ends it here, too
    _serve(settings, address, listener or address.bind(), options, simulation.serving_speed, environment)
    return 0


def _serve(
    settings: EngineSettings,
    address: Address,
    listener: socket.socket,
    options: argparse.Namespace,
    speed: float,
    environment: Mapping[str, str],
) -> None:
    import asyncio  # late, as the web server: neither belongs to the start

    from bezel_simulated_vllm.serving import serve

    fault_file = environment.get(faults.VARIABLE)
    serving = serve(
        settings,
        address,
        listener,
        speed=speed,
        log_level=options.uvicorn_log_level,
        access_log=not options.disable_uvicorn_access_log,
        statistics_seconds=statistics_seconds(environment),
        faults=faults.ServingFaults(Path(fault_file), time.monotonic) if fault_file else None,
        outlives_engine=environment.get("VLLM_KEEP_ALIVE_ON_ENGINE_DEATH", "0") not in {"", "0"},
    )
    asyncio.run(serving)


def statistics_seconds(environment: Mapping[str, str]) -> float:
    """Return the seconds between two lines of statistics: vLLM's default where its variable is not above 0."""
    seconds = float(environment.get(_STATISTICS, _DEFAULT_STATISTICS_SECONDS))
    return seconds if seconds > 0 else _DEFAULT_STATISTICS_SECONDS


def _simulation(environment: Mapping[str, str]) -> _Simulation:
    """Read the variables of the simulation.

    Raises:
        UserError: every variable that is wrong.
    """
    readers: dict[str, Callable[[], Any]] = {
        "speed": partial(_factor, environment, "LOCALCLOUD_SPEED"),
        "serving_speed": partial(_factor, environment, "LOCALCLOUD_SERVING_SPEED"),
        "faults": partial(faults.start_faults, environment),
        "machine": partial(machine_from_environment, environment),
    }
    values: dict[str, Any] = {}
    problems: list[Problem | str] = []
    for name, read in readers.items():
        try:
            values[name] = read()
        except UserError as error:
            problems += error.problems
    if problems:
        raise UserError(*problems)
    return _Simulation(**values)


def _check_program(options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Check that vLLM's own HTTP server is wanted, the one program that is simulated.

    Raises:
        UserError: another one would answer, or none.
    """
    switches = {"--grpc": options.grpc, "--headless": options.headless}
    rust = environment.get(_RUST, "0")
    problems = [
        Problem(name, None, "no HTTP server answers then, and no other one is simulated.", "remove it.")
        for name, is_on in switches.items()
        if is_on
    ]
    if rust.isdigit() and int(rust):
        consequence = "a program in Rust answers in place of vLLM's own server, and it is not simulated."
        problems.append(Problem(_RUST, rust, consequence, "remove it, or set it to 0."))
    if problems:
        raise UserError(*problems)


def _check_model(options: argparse.Namespace, machine: SimulatedMachine, environment: Mapping[str, str]) -> None:
    """Check that a command line without a model has one: vLLM takes one of the hub then.

    Raises:
        UserError: it has none, and no hub is named that has vLLM's.
    """
    named = {"model", "model_tag"} & {*options.given}
    if named or options.model in machine.mounts or environment.get("HF_ENDPOINT"):
        return
    consequence = f"vLLM would download {options.model} then, and the simulated server downloads nothing."
    repair = "name a model of the catalogue or the folder of one, e.g. `simulated-vllm serve google/gemma-4-E2B-it`, "
    repair += "or set HF_ENDPOINT to the address of a hub that has vLLM's."
    raise UserError(Problem("MODEL", NOT_SET, consequence, repair))


def _address(environment: Mapping[str, str], options: argparse.Namespace) -> Address:
    """Return the address of the options, or of LOCALCLOUD_LISTEN in their place."""
    host = options.host or "0.0.0.0"
    listen = environment.get("LOCALCLOUD_LISTEN")
    if not listen:
        return Address(host, options.port)
    try:
        return listen_address(listen, host)
    except ValueError:
        repair = "give HOST:PORT or unix:PATH:PORT, e.g. 127.0.0.1:8000."
        raise UserError(Problem("LOCALCLOUD_LISTEN", listen, "it names no port to listen on.", repair)) from None


def _factor(environment: Mapping[str, str], name: str) -> float:
    """Return the factor of a variable, 1 without it.

    Raises:
        UserError: it is not a finite number above 0.
    """
    text = environment.get(name) or "1"
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor < math.inf:
        consequence = "no time can be divided by it."
        raise UserError(Problem(name, text, consequence, "give a number above 0, e.g. 60, or leave it out for 1."))
    return factor
