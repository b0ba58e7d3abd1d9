"""`python -m bezel.localcloud DIR`: serve one directory in the foreground and log to DIR/logs."""

import argparse
import sys
from pathlib import Path

from bezel.errors import UserError
from bezel.localcloud.core.clock import InstanceTiming
from bezel.localcloud.daemon import serve
from bezel.localcloud.services.cloud_run.runtime.container_command import real, simulated


def main() -> int:
    """Run the daemon and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bezel.localcloud", description=__doc__)
    parser.add_argument("directory", type=Path, help="directory for all data")
    parser.add_argument("--server", choices=("sim", "vllm"), default="sim", help="server behind each revision")
    parser.add_argument("--speed", type=float, default=60.0, help="factor by which the platform's waits are shortened")
    parser.add_argument("--idle-seconds", type=float, default=900.0, help="seconds that an idle instance keeps running")
    options = parser.parse_args()
    if options.server == "sim":
        launcher, timing = simulated, InstanceTiming(options.speed, options.idle_seconds)
    else:  # only the simulated engine starts faster; a real one needs its own time
        launcher, timing = real, InstanceTiming(1.0, options.idle_seconds, machine_seconds=0.0)
    try:
        serve(options.directory, launcher, server=options.server, speed=options.speed, timing=timing)
    except UserError as error:
        sys.stderr.write(f"localcloud: {error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
