"""Call of a release's function by the arguments of a command line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bezel_base.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def print_lines(lines: Callable[..., Iterable[object]], arguments: Sequence[str], count: int, usage: str | None) -> int:
    """Print what a function returns of as many arguments, one a line; return the exit status.

    Another number of arguments shows the usage, and a mistake of the user's the error.
    """
    if len(arguments) != count:
        sys.stderr.write(f"{usage}\n")
        return 2
    try:
        for line in lines(*arguments):
            print(line)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
