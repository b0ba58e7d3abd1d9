"""localcloud's own daemon whose containers are the tiny fake: `fake_daemon.py DIR [SPEED] [IDLE_SECONDS]`.

Without arguments it is a process that has loaded localcloud and forks daemons (`daemon_forks`).
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
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
# That a request waits for a place: longer than any test holds the only one, however busy this machine is.
QUEUE_SECONDS = 60.0
# What a daemon loads late, beside the modules of its services.
LATE = ("bezel_localcloud.control_api", "bezel_localcloud.http.multipart", "httptools", "uvicorn.lifespan.off")


def launch_fake(container: ContainerLaunch) -> Command:
    argv = (sys.executable, "-S", "-E", str(FAKE), *serve_arguments((), container.args))
    return Command(argv, environment_of(container))


def run_daemon(directory: Path, speed: float, idle: float, queue: float = QUEUE_SECONDS) -> None:
    """Serve until it is stopped."""
    timing = InstanceTiming(speed, idle, machine_seconds=10.0, queue_seconds=queue)
    try:
        serve(directory, launch_fake, server="sim", speed=speed, timing=timing)
    except UserError as error:
        sys.exit(str(error))


def load() -> None:
    """Load what a daemon needs, but for what this installation lacks: a daemon does without."""
    services = importlib.import_module("bezel_localcloud.services")
    names = (module.name for module in pkgutil.walk_packages(services.__path__, f"{services.__name__}."))
    for name in (*LATE, *names):
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def fork_daemons() -> None:
    """Fork a daemon for each line of standard input until its end, and write its process id to standard output."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that none stays that has ended
    for line in sys.stdin:
        order = json.loads(line)
        if pid := os.fork():
            print(pid, flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
            os.dup2(file, number)
        os.chdir(order["directory"])
        os.environ.clear()
        os.environ.update(order["variables"])
        run_daemon(Path(order["directory"]), order["speed"], order["idle"], order.get("queue", QUEUE_SECONDS))
        return


if __name__ == "__main__":
    if sys.argv[1:]:
        run_daemon(Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
    else:
        load()
        fork_daemons()
