"""`python -m bezel.localcloud DIR`: serve one directory in the foreground; DIR/logs tells what happens."""

import argparse
import sys
from pathlib import Path

from bezel.localcloud.core.clock import InstanceTiming
from bezel.localcloud.core.paths import DirectoryError
from bezel.localcloud.daemon import AlreadyRunningError, report_refusal, serve
from bezel.localcloud.services.cloud_run.runtime.container_command import real, simulated


def main() -> int:
    """Run the daemon and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bezel.localcloud", description=__doc__)
    parser.add_argument("directory", type=Path, help="where everything is kept")
    parser.add_argument("--server", choices=("sim", "vllm"), default="sim", help="what stands behind a revision")
    parser.add_argument("--speed", type=float, default=60.0, help="by how much the platform's waits are shortened")
    parser.add_argument("--idle-seconds", type=float, default=900.0, help="how long an idle instance is kept")
    chosen = parser.parse_args()
    launcher = simulated if chosen.server == "sim" else real
    # Only the simulated engine starts faster; a real one needs its own time.
    if chosen.server == "sim":
        timing = InstanceTiming(chosen.speed, chosen.idle_seconds)
    else:
        timing = InstanceTiming(1.0, chosen.idle_seconds, machine_seconds=0.0)
    try:
        serve(chosen.directory, launcher, server=chosen.server, speed=chosen.speed, timing=timing)
    except AlreadyRunningError as error:
        return report_refusal(error)
    except DirectoryError as error:
        sys.stderr.write(f"localcloud: {error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
