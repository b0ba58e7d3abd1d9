"""Output of the engine on this process's standard output, by a display of its own where that is no terminal.

The engine writes into a pipe, whose other end a thread reads; what it shows is decided in `texts`. The engine holds
that end too: where this process is killed, the engine still ends in order.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from bezel.engine.run.process import Streams
from bezel.engine.run.texts import Display

_END_SECONDS = 10.0
"""How long the rest of the output is waited for, once the engine has ended: a plugin of it may hold the pipe."""


@contextlib.contextmanager
def display_output() -> Iterator[Streams | None]:
    """Descriptors of the engine's standard output and error; None on a terminal, where it has its own display."""
    if sys.stdout.isatty():
        yield None
        return
    outlet, inlet = os.pipe()
    reader = threading.Thread(target=_show, args=(outlet,), name="engine-output", daemon=True)
    reader.start()
    try:
        yield Streams(inlet, 2, (outlet,))
    finally:
        os.close(inlet)
        reader.join(_END_SECONDS)


def _show(outlet: int) -> None:
    """Show the lines that come through a pipe until its end; a closed output ends the showing, never the reading."""
    display, writes = Display(), True
    with os.fdopen(outlet, encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            writes = writes and _write(display.take(line.rstrip("\r\n")))
    if writes:
        _write(display.end())


def _write(lines: list[str]) -> bool:
    try:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except (OSError, ValueError):
        return False
    return True
