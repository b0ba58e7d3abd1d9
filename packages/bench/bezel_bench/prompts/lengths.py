"""Lengths of prompts and responses, drawn for each request: normal, log-normal, or those of a file.

The same seed draws the same lengths, whichever process sends a request. Pure, apart from reading the file.
"""

import math
import random
from dataclasses import dataclass
from pathlib import Path

from bezel_base.errors import Problem, UserError
from bezel_bench.prompts.datasets import MOST_TOKENS, read_text

_REPAIR = "write normal:MEAN,STD, lognormal:MEDIAN,SIGMA or file:PATH, e.g. normal:512,128."


@dataclass(frozen=True)
class Lengths:
    """A distribution of lengths in tokens.

    Attributes:
        kind: "normal" or "lognormal"; "file": `listed`, in their order, over and over.
        middle: The mean of "normal", the median of "lognormal", in tokens.
        spread: The standard deviation: of "normal" in tokens, of "lognormal" that of the logarithm.
    """

    kind: str
    middle: float = 0.0
    spread: float = 0.0
    listed: tuple[int, ...] = ()

    def of(self, index: int, seed: str) -> int:
        """Return the length of the request of that number: at least 1."""
        if self.kind == "file":
            return self.listed[index % len(self.listed)]
        drawn = random.Random(f"{seed}/{index}").gauss(0, self.spread)  # noqa: S311 - lengths, no secrets
        length = self.middle + drawn if self.kind == "normal" else self.middle * math.exp(min(drawn, 20.0))
        return min(max(1, round(length)), MOST_TOKENS)


def lengths_of(option: str, text: str) -> Lengths:
    """Return the distribution that an option describes.

    Args:
        option: Its name, for messages.
        text: Its value.

    Raises:
        UserError: It describes none, or its file cannot be read.
    """
    kind, _, rest = text.partition(":")
    if kind == "file" and rest:
        return Lengths(kind, listed=_read_lengths(option, Path(rest)))
    try:
        middle, spread = map(float, rest.split(","))
    except ValueError:
        raise UserError(Problem(option, text, "expected a distribution of lengths.", _REPAIR)) from None
    if kind not in ("normal", "lognormal"):
        raise UserError(Problem(option, text, f"expected normal, lognormal or file, got {kind!r}.", _REPAIR))
    if not (1 <= middle <= MOST_TOKENS and 0 <= spread <= MOST_TOKENS):
        consequence = "expected a middle of 1 token or more, and a spread of 0 or more."
        raise UserError(Problem(option, text, consequence, _REPAIR))
    return Lengths(kind, middle, spread)


def _read_lengths(option: str, file: Path) -> tuple[int, ...]:
    lengths = []
    for number, line in enumerate(read_text(file, option).splitlines(), 1):
        if not line.strip():
            continue
        if not line.strip().isdecimal() or not 1 <= int(line) <= MOST_TOKENS:
            consequence = f"line {number} is {line.strip()[:40]!r}, expected a number of tokens above 0."
            raise UserError(Problem(option, str(file), consequence, "write one length a line."))
        lengths.append(int(line))
    if not lengths:
        raise UserError(Problem(option, str(file), "it holds no length.", "write one length a line."))
    return tuple(lengths)
