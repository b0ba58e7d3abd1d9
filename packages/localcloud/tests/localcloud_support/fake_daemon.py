"""localcloud's own daemon whose containers are the tiny fake: `fake_daemon.py DIR [SPEED] [IDLE_SECONDS]`."""

import sys
from pathlib import Path

from bezel_base.errors import UserError
from bezel_localcloud.core.clock import InstanceTiming
from bezel_localcloud.daemon import serve
from bezel_localcloud.services.cloud_run.runtime.container_command import (
    Command,
    ContainerLaunch,
    environment_of,
    serve_arguments,
)

FAKE = Path(__file__).with_name("fake_container.py")


def launch_fake(container: ContainerLaunch) -> Command:
    argv = (sys.executable, "-S", "-E", str(FAKE), *serve_arguments((), container.args))
    return Command(argv, environment_of(container))


if __name__ == "__main__":
    directory, speed, idle = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    timing = InstanceTiming(speed, idle, machine_seconds=0.5, queue_seconds=1.0)
    try:
        serve(directory, launch_fake, server="sim", speed=speed, timing=timing)
    except UserError as error:
        sys.exit(str(error))
