"""`bezel watch`: the page about a stack again and again, on the same place of a terminal, until Ctrl-C.

Where the output is no terminal, page follows page; with `--json` one line each. Without colours. Leaves the page to
bezel.operations.watching.
"""

import argparse
import os
import shutil
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from bezel.cli.operation import arguments_of
from bezel.console import say, write

if TYPE_CHECKING:
    from bezel.operations.watching.page import Watch
    from bezel.pulumi_engine.project import Project

_HOME, _REST = "\x1b[H", "\x1b[J"
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"


def run(project: "Project", options: argparse.Namespace) -> int:
    """Show pages; return the exit code of the last one, or 0 after Ctrl-C.

    Raises:
        UserError: An argument is invalid, or the backend has no such stack.
    """
    from bezel.operations.context import Context
    from bezel.operations.registry import operation

    called = operation(options.operation)
    arguments = arguments_of(called, options)
    on_screen = sys.stdout.isatty() and not options.json and not options.once
    if on_screen:
        write(_HIDE + _HOME + _REST)
    ended = threading.Event()
    # An exception in the middle of a page could leave a lock of a pool of threads held.
    before = signal.signal(signal.SIGINT, lambda *_: _end(ended, before))
    try:
        while not ended.is_set():
            # A line of progress would move the page.
            with Context(project.folder, os.environ, show=lambda _line: None, cancelled=ended) as context:
                page: Watch = called.load()(context, arguments)  # type: ignore[assignment]
            if options.once:
                say((page.model_dump_json(indent=2) if options.json else page.text()).rstrip("\n"))
                return page.exit_code
            if on_screen:
                write(_screen(page))
            else:
                say(page.model_dump_json() if options.json else page.text())
    finally:
        signal.signal(signal.SIGINT, before)
        if on_screen:
            write(f"\n{_SHOW}")
    return 0


def _end(ended: threading.Event, before: Any) -> None:
    """End after the present page, which waits no longer; a second Ctrl-C ends at once."""
    ended.set()
    signal.signal(signal.SIGINT, before)


def _screen(page: "Watch") -> str:
    """The page over the former one, as much of it as the terminal holds."""
    columns, rows = shutil.get_terminal_size()
    lines = [line[:columns] for line in page.lines()[: max(1, rows - 1)]]
    return _HOME + "".join(f"{line}\x1b[K\n" for line in lines) + _REST
