"""`bezel watch`: the page about a stack again and again, on the same place of a terminal, until Ctrl-C.

Where the output is no terminal, page follows page; with `--json` one line each. Without colours. Leaves the page to
bezel.operations.watch.
"""

import argparse
import os
import shutil
import signal
import sys
import threading
from typing import TYPE_CHECKING

from bezel.cli.operation import arguments_of
from bezel_base import ending_signals
from bezel_base.console import say, write

if TYPE_CHECKING:
    from bezel.engine.project.project import Project
    from bezel.operations.watch.page import Watch

_HOME, _REST = "\x1b[H", "\x1b[J"
_PAGE_SECONDS = 3.0
"""How long a page may take to its end after Ctrl-C: one that waits for the backend does not see it."""
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"


def run(project: "Project", options: argparse.Namespace) -> int:
    """Show pages; return the exit code of the last one, or 0 after Ctrl-C, which is how it ends.

    Raises:
        UserError: An argument is invalid, or the backend has no such stack.
    """
    from bezel.operations.context import Context
    from bezel.operations.registry import operation
    from bezel.operations.watch.page import watch

    called = operation(options.operation)
    arguments = arguments_of(called, options)
    on_screen = sys.stdout.isatty() and not options.json and not options.once
    if on_screen:
        write(_HIDE + _HOME + _REST)
    ended = threading.Event()
    # An exception in the middle of a page could leave a lock of a pool of threads held, so it ends after the page,
    # which waits no longer. A second Ctrl-C ends it at once; so does a page that is too slow.
    again = threading.Timer(_PAGE_SECONDS, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    again.daemon = True

    def end(*_: object) -> None:
        ended.set()
        signal.signal(signal.SIGINT, before)
        again.start()

    before = signal.signal(signal.SIGINT, end)
    page: Watch | None = None
    try:
        while not ended.is_set():
            # A line of progress would move the page.
            with Context(project.folder, os.environ, show=lambda _line: None, cancelled=ended) as context:
                page = watch(context, arguments, page)  # type: ignore[arg-type]
            if options.once:
                say((page.model_dump_json(indent=2) if options.json else page.text()).rstrip("\n"))
                return page.exit_code
            if on_screen:
                write(_screen(page))
            else:
                say(page.model_dump_json() if options.json else page.text())
    finally:
        again.cancel()
        signal.signal(signal.SIGINT, before)
        if on_screen:
            write(f"\n{_SHOW}")
    return ending_signals.exit_code() or 0


def _screen(page: "Watch") -> str:
    """The page over the former one, as much of it as the terminal holds."""
    columns, rows = shutil.get_terminal_size()
    lines = [line[:columns] for line in page.lines()[: max(1, rows - 1)]]
    return _HOME + "".join(f"{line}\x1b[K\n" for line in lines) + _REST
