"""Lines and tables for the user, written at once: a command may be killed, and a reader may follow its output."""

import sys
from collections.abc import Iterable, Sequence

from bezel_base.text.printable import encodable


def say(text: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{encodable(text)}\n")
    sys.stdout.flush()


def write(text: str) -> None:
    """Write a piece of a line to standard output, at once."""
    sys.stdout.write(encodable(text))
    sys.stdout.flush()


def note(text: str) -> None:
    """Write a line to standard error without credentials, apart from the result, which a program may read."""
    from bezel_base.text.redaction import redact  # late, as in bezel_base.errors

    sys.stderr.write(f"{encodable(redact(text))}\n")
    sys.stderr.flush()


def align_columns(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table with columns of equal width; the last column may be of any length."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in cells), strict=True)]
    padded = ([*map(str.ljust, row[:-1], widths), row[-1]] for row in cells)
    return ["  ".join(row).rstrip() for row in padded]
