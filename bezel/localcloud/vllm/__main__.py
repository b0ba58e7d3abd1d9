"""`python -m bezel.localcloud.vllm ARG...`: what runs in place of `vllm serve ARG...` in a container of localcloud.

Environment, beside the container's own: LOCALCLOUD_LISTEN (host:port, instead of --host and --port),
LOCALCLOUD_HARDWARE and LOCALCLOUD_MOUNTS (see `hardware.py`), LOCALCLOUD_SPEED (divides start-up times),
LOCALCLOUD_SERVING_SPEED (divides the engine's step times), LOCALCLOUD_START_REPORT (number of an open file that is told
the simulated seconds of the start).
"""

from __future__ import annotations

import os
import sys
import time

from bezel.localcloud.vllm.failures import StartError
from bezel.localcloud.vllm.hardware import machine_from_environment
from bezel.localcloud.vllm.options import parse
from bezel.localcloud.vllm.startup import start


def main() -> int:
    """Start, serve, and return the exit status of the real server."""
    environment = dict(os.environ)
    options = parse(sys.argv[1:])
    speed = float(environment.get("LOCALCLOUD_SPEED") or 1)
    try:
        machine = machine_from_environment(environment)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    took = 0.0

    def sleep(seconds: float) -> None:
        nonlocal took
        took += seconds
        time.sleep(seconds / speed)

    try:
        settings = start(options, machine, environment, sleep)
    except StartError as failure:
        return failure.status
    if report := environment.get("LOCALCLOUD_START_REPORT"):
        os.write(int(report), f"{took:.1f}".encode())
    # Imported when the start has succeeded: a refused command line should not pay for a web server.
    from bezel.localcloud.vllm.serving import serve

    host, _, port = environment.get("LOCALCLOUD_LISTEN", f"{options.host or '0.0.0.0'}:{settings.port}").rpartition(":")
    return serve(
        settings,
        host,
        int(port),
        speed=float(environment.get("LOCALCLOUD_SERVING_SPEED") or 1),
        log_level=options.uvicorn_log_level,
        access_log=not options.disable_uvicorn_access_log,
    )


if __name__ == "__main__":
    sys.exit(main())
