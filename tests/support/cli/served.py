"""`bezel local serve` as a user starts it: in an empty folder, with a home of its own, and nothing else."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from bezel.cli.main import main
from localcloud_support.command_here import run_here

BEZEL = str(Path(sys.executable).parent / "bezel")


class Served:
    """A running `bezel local serve --json` and what it printed.

    Attributes:
        report: Its line of JSON.
    """

    def __init__(self, home: Path, *options: str, **variables: str) -> None:
        self.home = home
        self.variables = {"PATH": os.environ["PATH"], "HOME": str(home)} | variables
        self._process = subprocess.Popen(
            [BEZEL, "local", "serve", "--json", *options],
            cwd=home,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.report = json.loads(self._process.stdout.readline() or "null") or {}

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Another `bezel` command of the same user in the same folder, in this process."""
        return run_here(main, arguments, self.home, self.variables)

    def end(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Send a signal; its exit status and what it wrote to standard error."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        _, errors = self._process.communicate(timeout=30)
        return self._process.returncode, errors
