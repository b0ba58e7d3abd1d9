"""`bezel local serve` as a user starts it: in an empty folder, with a home of its own, and nothing else.

It is forked from a process that has loaded the command (`warm_bezel`). The script itself is run by two tests of
`tests/cli/test_local_serve.py`: a reader that is gone, a folder of another user.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from bezel.cli.main import main
from localcloud_support.command_here import run_here
from tests.support.e2e.warm_bezel import WarmProcess
from tests.support.e2e.warm_server import Order

BEZEL = str(Path(sys.executable).parent / "bezel")


class Served:
    """A running `bezel local serve --json` and what it printed.

    Attributes:
        report: Its line of JSON.
    """

    def __init__(self, home: Path, *options: str, **variables: str) -> None:
        self.home = home
        self.variables = {"PATH": os.environ["PATH"], "HOME": str(home)} | variables
        order = Order(sys.executable, "", ["local", "serve", "--json", *options], str(home), self.variables)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        reading, writing = (os.fdopen(end, mode) for end, mode in zip(os.pipe(), ("r", "wb"), strict=True))
        with Path(os.devnull).open("rb") as nothing, writing:
            self._process = WarmProcess(order, [nothing, writing, self._errors])
        self._output = reading
        self.report = json.loads(self._output.readline() or "null") or {}

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Another `bezel` command of the same user in the same folder, in this process."""
        return run_here(main, arguments, self.home, self.variables)

    def end(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Send a signal; its exit status and what it wrote to standard error."""
        self._process.send_signal(number)
        code = self._process.wait(60)
        self._errors.seek(0)
        return code, self._errors.read().decode()
