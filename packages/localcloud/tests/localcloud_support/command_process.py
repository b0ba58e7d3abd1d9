"""`localcloud` as a user starts it: in an empty folder, with a home of its own, and nothing else.

`localcloud_here` runs a command in this process, for tests of what it does and says.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bezel_localcloud.command.main import main
from localcloud_support.command_here import run_here

LOCALCLOUD = str(Path(sys.executable).parent / "localcloud")
SECONDS = 90


def variables(home: Path) -> dict[str, str]:
    """The variables of a user without settings."""
    return {"PATH": os.environ["PATH"], "HOME": str(home)}


def run_localcloud(folder: Path, *arguments: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a folder."""
    return subprocess.run(
        [LOCALCLOUD, *arguments],
        cwd=folder,
        env=variables(home or folder),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def localcloud_here(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """As `run_localcloud`, in this process."""
    return run_here(main, arguments, folder, variables(folder))


class ServeProcess:
    """A running `localcloud serve --json`.

    Attributes:
        report: Its line of JSON; {} if it ended before it wrote one.
    """

    def __init__(self, folder: Path, *options: str, environ: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [LOCALCLOUD, "serve", "--json", *options],
            cwd=folder,
            env=variables(folder) | dict(environ or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.report: dict[str, Any] = json.loads(self._process.stdout.readline() or "{}")

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait(self) -> tuple[int, str]:
        """Wait for its end: exit status, and what it wrote to standard error."""
        _, errors = self._process.communicate(timeout=SECONDS)
        return self._process.returncode, errors

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal unless it has ended, and wait for its end."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        return self.wait()
