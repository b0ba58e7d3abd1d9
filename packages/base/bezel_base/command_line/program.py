"""Run of a program's command: every error of the user is shown, and every end has its exit code.

Owns the signals, the standard streams and the form of errors. Leaves out the commands, which the program calls.
"""

import contextlib
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence

from bezel_base import ending_signals
from bezel_base.command_line.parser import UsageError
from bezel_base.errors import UserError
from bezel_base.process_end import collect_seldom, skip_last_collection


def run_program(
    name: str,
    arguments: Sequence[str] | None,
    run: Callable[[Sequence[str]], int],
    as_typed: Callable[[str], str] = str,
) -> int:
    """Run a command of a program; return its exit code (`exit_codes`). Where it failed, standard error has the reason.

    Args:
        name: Name of the program, which precedes its errors.
        arguments: The arguments; None takes those of the process, which then ends even where threads wait.
        run: Parses the arguments, runs the command and returns its exit code.
        as_typed: Changes the commands that an error names to those that the user's shell has.
    """
    command_line = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        skip_last_collection()
        collect_seldom()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name of a file or a text of JSON may hold what no encoding takes, and a terminal may take ASCII only.
        sys.stdout.reconfigure(errors="backslashreplace")
    ending_signals.forget()
    with ending_signals.handle():
        code = _run_and_show_errors(name, command_line, run, as_typed)
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


def _run_and_show_errors(
    name: str, command_line: Sequence[str], run: Callable[[Sequence[str]], int], as_typed: Callable[[str], str]
) -> int:
    """Run one subcommand, and show its error."""
    try:
        try:
            return run(command_line)
        finally:
            sys.stdout.flush()  # else a full disk, or a closed reader, shows only at the interpreter's exit
    except UserError as error:
        _show(name, error, command_line, as_typed)
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        _show(name, UserError("stopped"), command_line, as_typed)
        return ending_signals.INTERRUPTED
    except OSError as error:
        from bezel_base.command_line import exits

        if isinstance(error, BrokenPipeError) and exits.reader_gone():
            return exits.READER_GONE
        failure = exits.user_error(error)
        if failure is None:
            raise
        _show(name, failure, command_line, as_typed)
        return 1


def _show(name: str, error: UserError, command_line: Sequence[str], as_typed: Callable[[str], str]) -> None:
    """Write an error to standard error: as text, or with --errors json as one line of JSON."""
    # `--errors` is an option of the root, so it comes first; the command line may be one that does not parse.
    as_json = [*command_line[:2]] == ["--errors", "json"] or [*command_line[:1]] == ["--errors=json"]
    text = str(error) if isinstance(error, UsageError) else f"{name}: {error}"
    if as_json:
        sys.stderr.write(f"{as_typed(json.dumps(error.as_json()))}\n")
        return
    from bezel_base.terminal.screen import show_message  # late: a command without an error needs none

    show_message(as_typed(text), sys.stderr)
