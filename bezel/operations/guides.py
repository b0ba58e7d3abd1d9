"""Guides of operations: when a caller chooses one, what a call costs, and what comes next. Pure.

The texts are in guides.toml, each once: the MCP server's list of tools, the help of commands and the documents show
them, each with its reader's names of the other operations.
"""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Formatter


@dataclass(frozen=True)
class Guide:
    """What the reader of a list chooses an operation by. Other operations are named `{name}`.

    Attributes:
        title: What a client shows for it, as a few words.
        when: When it is the one to call, and which neighbour is instead.
        costs: What a call costs: money, time, what it changes.
        next: What is called after it.
        narrows: Those of its arguments that make its answer smaller.
        is_long: Whether its answer may be a long one, so that a reader is offered the choice of its length.
    """

    title: str = ""
    when: str = ""
    costs: str = ""
    next: str = ""
    narrows: tuple[str, ...] = ()
    is_long: bool = False

    def text(self, shown_name: Callable[[str], str]) -> str:
        """The guide as sentences.

        Args:
            shown_name: Name of an operation -> how the reader calls it.
        """
        parts = (("Use it ", self.when), ("Costs: ", self.costs), ("Next: ", self.next))
        sentences = [f"{begin}{text}." for begin, text in parts if text]
        names = {name: shown_name(name) for name in operations_in(" ".join(sentences))}
        return " ".join(sentences).format_map(names)


@cache
def guides() -> dict[str, Guide]:
    """Name of an operation -> its guide."""
    text = (files("bezel.operations") / "guides.toml").read_text(encoding="utf-8")
    return {name: _guide(**keys) for name, keys in tomllib.loads(text).items()}


def _guide(*, narrows: Sequence[str] = (), long: bool = False, **texts: str) -> Guide:
    return Guide(narrows=tuple(narrows), is_long=long, **texts)


def guide_of(name: str) -> Guide:
    """The guide of an operation; an empty one where none is written."""
    return guides().get(name, Guide())


def operations_in(text: str) -> set[str]:
    """Names of the operations that a text refers to."""
    return {name for _, name, _, _ in Formatter().parse(text) if name}
