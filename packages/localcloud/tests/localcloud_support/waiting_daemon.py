"""localcloud's own daemon whose containers say their process id and wait: `waiting_daemon.py DIR FIFO`."""

import sys
from pathlib import Path

from bezel_localcloud.core.clock import InstanceTiming
from bezel_localcloud.daemon import serve
from bezel_localcloud.services.cloud_run.runtime.container_command import Command, ContainerLaunch, environment_of

_WAIT = "import os, signal, sys\nprint(os.getpid(), file=open(sys.argv[1], 'w'), flush=True)\nsignal.pause()"


def main(directory: str, fifo: str) -> None:
    def launch(container: ContainerLaunch) -> Command:
        return Command((sys.executable, "-S", "-E", "-c", _WAIT, fifo), environment_of(container))

    serve(Path(directory), launch, server="sim", speed=100.0, timing=InstanceTiming(100.0, 900.0))


if __name__ == "__main__":
    main(*sys.argv[1:])
