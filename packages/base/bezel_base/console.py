"""Lines for the user, written at once: a command may be killed, and a reader may follow its output."""

import sys

from bezel_base.terminal.turns import settle
from bezel_base.text.printable import encodable


def say(text: str) -> None:
    """Write a line to standard output."""
    settle()
    sys.stdout.write(f"{encodable(text)}\n")
    sys.stdout.flush()


def write(text: str) -> None:
    """Write a piece of a line to standard output, at once."""
    settle()
    sys.stdout.write(encodable(text))
    sys.stdout.flush()


def note(text: str) -> None:
    """Write a line to standard error without credentials, apart from the result, which a program may read."""
    from bezel_base.terminal.screen import show_message  # late: many commands have nothing to say here
    from bezel_base.text.redaction import redact  # late, as in bezel_base.errors

    show_message(redact(text), sys.stderr)
