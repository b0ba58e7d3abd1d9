"""Further options of a load for agents: those of `bezel bench run` that shape what is sent, and nothing else.

An option that names a file, an address, a variable or a header is none of them, as it reaches beyond the server that an
agent may load. Values are checked by the command's own parser and rules.
"""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated

from pydantic import Field

from bezel_base.errors import Problem, UserError

NAMES = (
    *("answers", "arrivals", "audio-seconds", "burstiness", "cancel", "cancel-after", "column", "dataset", "deadline"),
    *("documents", "endpoint", "groups", "image-size", "images", "input-lengths", "length-column", "max-chars"),
    *("max-concurrency", "max-failed", "max-in-flight", "min-chars", "output-lengths", "prefix-tokens", "ramp", "seed"),
    *("think-time", "turns", "warmup", "warmup-seconds"),
)
LoadOption = Annotated[str, Field(pattern=r"^[a-z-]{4,15}=\S{1,99}$", examples=["cancel=0.1"])]
_OF_LENGTHS = ("input-lengths", "output-lengths")
_FILE = "file:"


def option_words(options: Sequence[str]) -> list[str]:
    """The words of the command line for options as NAME=VALUE.

    Raises:
        UserError: One of them is none that an agent may set, or is given twice; the error has every problem.
    """
    names = [option.partition("=")[0] for option in options]
    problems = [problem for option in options if (problem := _problem(option, names))]
    if problems:
        raise UserError(*problems)
    return [f"--{option}" for option in options]


def _problem(option: str, names: Sequence[str]) -> Problem | None:
    name, _, value = option.partition("=")
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        choice = f"write {near[0]}, or one of {', '.join(NAMES)}." if near else f"choose one of {', '.join(NAMES)}."
        return Problem("options", name, "expected an option that shapes the load.", choice)
    if names.count(name) > 1:
        return Problem("options", name, "expected each option once.", "give one.")
    if name in _OF_LENGTHS and value.startswith(_FILE):
        return Problem("options", option, "it names a file.", "write normal:MEAN,STD or lognormal:MEDIAN,SIGMA.")
    return None
