"""Runs `bezel` many times: each in a process of its own, forked from one that has loaded what the command needs.

Loading is half a second of CPU time, and these tests run it hundreds of times. What is run is the command's own `main`
with arguments, folder and environment of its own; the script that the package installs is run by `Rehearsal.start` and
by the tests of the command itself.
"""

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.e2e import warm_python
from tests.support.e2e.warm_server import LENGTH, Order, write_order


def run(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    output_file: Path,
    seconds: float,
    error_file: Path | None = None,
    prefix: str = "",
    python: Path | None = None,
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
    python = python or default
    order = write_order(Order(str(python), prefix, [*arguments], str(folder), dict(environment)))
    with (
        socket.socket(socket.AF_UNIX) as server,
        Path(os.devnull).open("rb") as nothing,
        output_file.open("ab") as output,
        (error_file or output_file).open("ab") as errors,
    ):
        server.connect(str(warm_python.serve("bezel", warm_python.shared_place())))
        streams = [stream.fileno() for stream in (nothing, output, errors)]
        socket.send_fds(server, [len(order).to_bytes(LENGTH, "big")], streams)
        server.sendall(order)
        server.settimeout(seconds)
        try:
            with server.makefile("rb") as answers:
                _process, code = answers.read(LENGTH), answers.read(LENGTH)
        except TimeoutError:  # it is killed with the end of the connection
            text = f"bezel {' '.join(arguments)} did not end in {seconds:g} s:\n{output_file.read_text()}"
            raise TimeoutError(text) from None
    if not code:
        raise ConnectionError(f"the server that forked bezel {' '.join(arguments)} is gone")
    return int.from_bytes(code, "big", signed=True)
