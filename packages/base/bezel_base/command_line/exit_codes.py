"""Exit codes of commands: those that every command has, and the line that says what a command's codes mean. Pure.

A command whose codes mean more says so in its row of the table of commands: `exit_codes`, code -> meaning. Leaves out
which error has which code (`bezel_base.errors`), and the signals themselves (`bezel_base.ending_signals`).
"""

import signal
from collections.abc import Mapping

from bezel_base.ending_signals import INTERRUPTED

DONE, FAILED, USAGE = 0, 1, 2
COMMON: Mapping[int, str] = {
    DONE: "done",
    FAILED: "failed",
    USAGE: "wrong arguments",
    INTERRUPTED: "ended by Ctrl-C",
    128 + signal.SIGTERM: "ended by SIGTERM",
}
"""Code that every command has -> what it means."""


def exit_codes_of(declared: Mapping[str, str]) -> dict[int, str]:
    """The exit codes of a command with what each means, in the order of the codes.

    Args:
        declared: `exit_codes` of its row: codes as text, as tables in TOML and JSON have their keys.
    """
    return dict(sorted({**COMMON, **{int(code): meaning for code, meaning in declared.items()}}.items()))


def format_exit_codes(declared: Mapping[str, str]) -> str:
    """The line of a command's help."""
    return f"Exit codes: {'; '.join(f'{code} {meaning}' for code, meaning in exit_codes_of(declared).items())}."
