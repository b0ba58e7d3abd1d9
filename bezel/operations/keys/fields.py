"""Arguments of keys that several commands have, each described once, with their bounds."""

from typing import Annotated

from pydantic import Field

from bezel.operations.arguments.model import Option, Reach
from bezel_base.errors import Problem, WrongValueError
from bezel_catalog.quantities import duration_text, parse_duration
from bezel_door.key_file import MOST_OF_A_LIMIT

LONGEST_LIFE = 3650 * 86_400
"""Seconds: ten years."""

KeyId = Annotated[str, Field(pattern=r"^[a-z0-9]{8}$", max_length=8, examples=["k7m2p9q4"])]
Team = Annotated[
    str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$", max_length=63, examples=["search"]), Reach.INSIDE
]
Model = Annotated[str, Field(pattern=r"^[!-~]{1,200}$", max_length=200, examples=["gemma-4-12b-it"])]
Limit = Annotated[int | None, Reach.INSIDE, Option("N"), Field(ge=1, le=MOST_OF_A_LIMIT)]


def seconds_of(option: str, text: str, *, least: int = 0) -> int:
    """Seconds of a duration such as `30d`.

    Raises:
        WrongValueError: It is none, shorter than `least` or longer than ten years.
    """
    seconds = parse_duration(text)
    if seconds is None:
        raise WrongValueError(Problem(option, text, "expected a duration.", "write e.g. 30d, 12h or 1d12h."))
    if not least <= seconds <= LONGEST_LIFE:
        bounds = f"from {duration_text(least)} to {duration_text(LONGEST_LIFE)}"
        raise WrongValueError(Problem(option, text, "it is out of range.", f"write a duration {bounds}."))
    return seconds
