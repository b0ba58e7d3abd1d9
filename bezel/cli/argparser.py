"""How a command line that is none is told: what is wrong, what was perhaps meant, where it says what is right.

Leaves out the arguments themselves (`bezel.cli.main` and the modules that it names).
"""

import argparse
import difflib
import math
from collections.abc import Sequence
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Of a command; those of its subcommands are of this class too. A mistake ends the process with exit code 2."""

    def __init__(self, *, prog: str | None = None, description: str | None = None) -> None:
        """As argparse has them."""
        # An abbreviation that is one option's today is two options' after the next release.
        super().__init__(prog=prog, description=description, allow_abbrev=False)
        self.register("type", int, _whole)
        self.register("type", float, _number)
        self.set_defaults(parser=self)

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """What the arguments say. What nothing takes is told by the subcommand that was called, which knows its own."""
        options, unknown = self.parse_known_args(arguments)
        called = options.parser
        del options.parser
        if unknown:
            called.refuse(unknown)
        return options

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Tell of arguments that nothing takes, and which options are like them."""
        known = list(self._option_string_actions)
        like = [found for word in unknown for found in difflib.get_close_matches(word.partition("=")[0], known, n=1)]
        meant = f"; did you mean {', '.join(like)}?" if like else ""
        self.error(f"nothing here takes {' '.join(unknown)}{meant}")

    def error(self, message: str) -> NoReturn:
        """Two lines: the whole usage of a command with forty options would hide what is wrong."""
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
    """A time to wait, or how many times faster.

    Raises:
        argparse.ArgumentTypeError: it is no number, not finite or not above 0.
    """
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no finite number above 0, as 90 and 0.5 are")
    return number
