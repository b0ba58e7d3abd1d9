"""Entry point `python -m bezel_simulated_vllm ARG...`: replaces `vllm serve ARG...` in a container of localcloud.

Environment, beside the container's own: LOCALCLOUD_LISTEN (host:port, or unix:PATH:PORT, in place of --host/--port),
LOCALCLOUD_HARDWARE and LOCALCLOUD_MOUNTS (see `hardware.py`), LOCALCLOUD_SPEED (divides start-up times),
LOCALCLOUD_SERVING_SPEED (divides the engine's step times), LOCALCLOUD_START_REPORT (number of an open file to which the
simulated seconds of the start are written), LOCALCLOUD_FAULTS (see `faults.py`).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from bezel_base.errors import UserError
from bezel_simulated_vllm.configuration import faults
from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.startup import start


def main() -> int:
    """Start, serve, and return the exit status of the real server."""
    environment = dict(os.environ)
    speed = float(environment.get("LOCALCLOUD_SPEED") or 1)
    try:
        start_faults = faults.start_faults(environment)
        options = parse(sys.argv[1:], start_faults.unknown)
        machine = machine_from_environment(environment)
    except (UserError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    phases: list[float] = []

    def sleep(seconds: float) -> None:
        phases.append(seconds)
        time.sleep(seconds / speed)

    try:
        settings = start(options, machine, environment, sleep, start_faults)
    except StartError as failure:
        return failure.status
    if report := environment.get("LOCALCLOUD_START_REPORT"):
        os.write(int(report), f"{sum(phases):.1f}".encode())
    while start_faults.never_listens:
        signal.pause()  # a signal that ends the process ends it here, too
    # Imported only after a successful start: a refused command line need not load a web server.
    import asyncio

    from bezel_simulated_vllm.serving import serve

    fault_file = environment.get(faults.VARIABLE)
    serving = serve(
        settings,
        environment.get("LOCALCLOUD_LISTEN", f"{settings.host}:{settings.port}"),
        speed=float(environment.get("LOCALCLOUD_SERVING_SPEED") or 1),
        log_level=options.uvicorn_log_level,
        access_log=not options.disable_uvicorn_access_log,
        faults=faults.ServingFaults(Path(fault_file), time.monotonic) if fault_file else None,
        outlives_engine=environment.get("VLLM_KEEP_ALIVE_ON_ENGINE_DEATH", "0") not in {"", "0"},
    )
    return asyncio.run(serving)


if __name__ == "__main__":
    sys.exit(main())
