"""Argument parser of the commands: its errors name the mistake, a similar option and the command for the help.

Leaves out the arguments themselves (`bezel.cli.main` and the modules that it names).
"""

import argparse
import difflib
import math
from collections.abc import Sequence
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Parser of a command and of its subcommands. A mistake ends the process with exit code 2."""

    def __init__(self, *, prog: str | None = None, description: str | None = None) -> None:
        """Take the arguments of the same names of `argparse.ArgumentParser`."""
        # No abbreviations: one that is unique today becomes ambiguous when a release adds an option.
        super().__init__(prog=prog, description=description, allow_abbrev=False)
        self.register("type", int, _whole)
        self.register("type", float, _number)
        self.set_defaults(parser=self)

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse the arguments. The called subcommand, which knows its own options, reports unrecognized ones."""
        options, unknown = self.parse_known_args(arguments)
        called = options.parser
        del options.parser
        if unknown:
            called.refuse(unknown)
        return options

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End the process with an error that names unrecognized arguments and similar options."""
        known = list(self._option_string_actions)
        like = [found for word in unknown for found in difflib.get_close_matches(word.partition("=")[0], known, n=1)]
        meant = f"; did you mean {', '.join(like)}?" if like else ""
        self.error(f"nothing here takes {' '.join(unknown)}{meant}")

    def error(self, message: str) -> NoReturn:
        """End the process with two lines: the full usage of a command with forty options would hide the mistake."""
        self.exit(2, f"{self.prog}: {message}\nEverything it takes: {self.prog} --help\n")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number, as 8 is") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number, as 90 and 0.5 are") from None


def above_zero(text: str) -> float:
    """Parse a finite number above 0: a time to wait, or a speed factor.

    Raises:
        argparse.ArgumentTypeError: The text is no number, or one that is not finite or not above 0.
    """
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no finite number above 0, as 90 and 0.5 are")
    return number
