"""Entry point of `bezel`: parses arguments, imports and calls the function of the command, shows every error.

The only imports of commands are made here, when a command is called: loading all of them takes a second.
"""

import argparse
import contextlib
import importlib
import io
import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.cli.argparser import UsageError, passes_on, root_parser
from bezel.engine import LOCAL_PULUMI
from bezel_base import ending_signals
from bezel_base.errors import UserError

if TYPE_CHECKING:
    from bezel.engine.project.project import Project


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Exit code 0: done; 1: it failed, the reason is on standard error; 2: wrong arguments; 130, 143: Ctrl-C or SIGTERM
    ended it.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    # It is for the user's own `pulumi`; bezel gives its engines copies itself.
    os.environ.pop(LOCAL_PULUMI, None)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name of a file or a text of JSON may hold what no encoding takes, and a terminal may take ASCII only.
        sys.stdout.reconfigure(errors="backslashreplace")
    ending_signals.forget()
    with ending_signals.handled():
        code = _shown(given)
    # A command that a signal has ended may have an exit code of its own for what it could not do.
    code = code if code == 0 else ending_signals.exit_code() or code
    if arguments is None and code > ending_signals.INTERRUPTED - signal.SIGINT:
        _end_at_once(code)
    return code


def _end_at_once(code: int) -> None:
    """End this process where threads still wait for answers: the interpreter would wait for them."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _shown(given: Sequence[str]) -> int:
    """Run one subcommand, and show its error."""
    try:
        try:
            return _run(parse(given))
        finally:
            sys.stdout.flush()  # else a full disk, or a closed reader, shows only at the interpreter's exit
    except UserError as error:
        _show(error, given)
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        _show(UserError("stopped"), given)
        return ending_signals.INTERRUPTED
    except OSError as error:
        from bezel.cli import exits

        if isinstance(error, BrokenPipeError) and exits.reader_gone():
            return exits.READER_GONE
        failure = exits.user_error(error)
        if failure is None:
            raise
        _show(failure, given)
        return 1


def parse(given: Sequence[str]) -> argparse.Namespace:
    """Parse the command line.

    Raises:
        UsageError: It is invalid.
    """
    parser = root_parser()
    if not passes_on(given):  # what follows the dashes is a value, as in other programs
        options = parser.read(given)
        options.pulumi = []
        return options
    # Split here: argparse cannot place the rest where our options come between the stack and the dashes.
    own, passed_on = list(given), []
    if "--" in own:
        dashes = own.index("--")
        own, passed_on = own[:dashes], own[dashes + 1 :]
    options = parser.read(own)
    if getattr(options, "pulumi", ()):
        parser.error(f"arguments that are passed on must follow --: {shlex.join(options.pulumi)} precedes it")
    options.pulumi = passed_on
    return options


def _show(error: UserError, given: Sequence[str]) -> None:
    """Write an error to standard error: as text, or with --errors json as one line of JSON."""
    # `--errors` is an option of the root, so it comes first; the command line may be one that does not parse.
    as_json = [*given[:2]] == ["--errors", "json"] or [*given[:1]] == ["--errors=json"]
    text = str(error) if isinstance(error, UsageError) else f"bezel: {error}"
    sys.stderr.write(f"{json.dumps(error.as_json()) if as_json else text}\n")


def _run(options: argparse.Namespace) -> int:
    module, _, function = options.run.partition(":")
    run = getattr(importlib.import_module(module), function)
    code: int = run(options) if options.needs_project == "none" else run(_project(options), options)
    return code


def _project(options: argparse.Namespace) -> "Project":
    """The project around the working directory; a command that needs none may run in any folder.

    Raises:
        ProjectError: There is none, and the command needs one.
    """
    from bezel.engine.project.project import Project, ProjectError, find_project

    try:
        return find_project(Path.cwd())
    except ProjectError:
        if options.needs_project == "optional" and not getattr(options, "stack", None):
            return Project(Path.cwd())
        raise
