"""Runs `bezel` many times: each in a process of its own, forked from one that has loaded what the command needs.

Loading is half a second of CPU time, and these tests run it hundreds of times. What is run is the command's own `main`
with arguments, folder and environment of its own; the script that the package installs is run by `Rehearsal.start` and
by the tests of the command itself.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from tests.support.e2e import warm_python
from tests.support.e2e.warm_server import LENGTH, Order, write_order
from tests.support.ended import is_readable

SECONDS = 60.0


class WarmProcess:
    """A `bezel` that runs, or a script of Python where the first argument names it.

    Attributes:
        pid: Its process; 0 where what forks is gone.
    """

    def __init__(self, order: Order, streams: Sequence[BinaryIO]) -> None:
        """Start it.

        Args:
            order: What it goes on with.
            streams: Its standard input, standard output and standard error, which it gets copies of.
        """
        sent = write_order(order)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(str(warm_python.serve("bezel", warm_python.shared_place())))
        numbers = [stream.fileno() for stream in streams]
        socket.send_fds(self._server, [len(sent).to_bytes(LENGTH, "big")], numbers)
        self._server.sendall(sent)
        self._answers = self._server.makefile("rb")
        self.pid = int.from_bytes(self._answers.read(LENGTH), "big")
        self._code: int | None = None

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self._code is None and not is_readable(self._server, 0):
            with contextlib.suppress(ProcessLookupError):  # it has ended, and its server is about to say so
                os.kill(self.pid, number)

    def wait(self, seconds: float) -> int:
        """Its exit code, or minus the signal that ended it.

        Raises:
            TimeoutError: It did not end in time, and is killed.
            ConnectionError: What forks is gone.
        """
        if self._code is None:
            self._server.settimeout(seconds)
            with self._server, self._answers:  # it is killed with the end of the connection
                code = self._answers.read(LENGTH)
            if not code:
                raise ConnectionError("the server that forked it is gone")
            self._code = int.from_bytes(code, "big", signed=True)
        return self._code


def run(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    output_file: Path,
    seconds: float,
    error_file: Path | None = None,
    prefix: str = "",
    python: Path | None = None,
    input_file: Path = Path(os.devnull),
) -> int:
    """Run `bezel ARGUMENTS` in a folder, or a script of Python where the first one names it; its exit code.

    Both of its streams go into `output_file`, standard error into `error_file` where there is one. `prefix` is the
    folder that it takes for its environment (`sys.prefix`), by default this process's; `python` is its interpreter, by
    default the launcher of the folder where what it starts is forked, else this process's.

    Raises:
        TimeoutError: It did not end in time, and was killed.
        ConnectionError: What forks is gone.
    """
    # With the interpreter of the folder's environment what the command starts is forked as well.
    default = warm_python.interpreter(folder) if warm_python.VARIABLE in environment else Path(sys.executable)
    order = Order(str(python or default), prefix, [*arguments], str(folder), dict(environment))
    with (
        input_file.open("rb") as input_stream,
        output_file.open("ab") as output,
        (error_file or output_file).open("ab") as errors,
    ):
        process = WarmProcess(order, [input_stream, output, errors])
    try:
        return process.wait(seconds)
    except TimeoutError:
        text = f"bezel {' '.join(arguments)} did not end in {seconds:g} s:\n{output_file.read_text()}"
        raise TimeoutError(text) from None


def run_whole(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `bezel ARGUMENTS` as `subprocess.run` does, with a text on its standard input.

    Raises:
        TimeoutError: It did not end in `SECONDS`, and was killed.
        ConnectionError: What forks is gone.
    """
    with tempfile.TemporaryDirectory() as place:
        stdin, stdout, stderr = (Path(place) / name for name in ("stdin", "stdout", "stderr"))
        stdin.write_text(typed)
        code = run(arguments, folder, environment, stdout, SECONDS, stderr, input_file=stdin)
        return subprocess.CompletedProcess([*arguments], code, stdout.read_text(), stderr.read_text())
