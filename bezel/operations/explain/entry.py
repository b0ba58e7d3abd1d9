"""Entry of an explanation: what a name means, what is allowed, why, and where that is known from."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from pydantic import Field

from bezel.operations.results import Result
from bezel_base.terminal.blocks import Block, Line, NamedValues, Role

Kind = Literal["vLLM option", "variable", "checkpoint", "hardware", "setting", "policy"]


class Fact(Result):
    """A fact with its name."""

    name: str
    value: str


class Entry(Result):
    """What one kind of name means."""

    kind: Kind
    name: str = Field(description="the name as the catalogue, vLLM, the settings or a policy pack spell it")
    meaning: str = Field(description="what it is, in one line")
    facts: tuple[Fact, ...] = Field(description="what is allowed and what is known, e.g. takes, default, choices")
    why: tuple[str, ...] = Field(description="limits and refusals, each with its reason and its repair")
    source: str = Field(description="where it is known from, with its date")

    def page(self) -> Iterator[Block]:
        """The entry for a terminal."""
        head = f"{self.name}: {self.kind}" + (f", {self.meaning}" if self.meaning else "")
        yield Line(head, Role.HEADING)
        yield NamedValues([(fact.name, fact.value) for fact in self.facts])
        yield from (Line(f"  {reason}") for reason in self.why)
        yield Line(f"  source: {self.source}")


def facts(rows: Mapping[str, str | None]) -> tuple[Fact, ...]:
    """Facts of names and values; one without a value is left out."""
    return tuple(Fact(name=name, value=value) for name, value in rows.items() if value)


def list_text(items: Iterable[object], most: int = 60) -> str | None:
    """Words in one line; None without any."""
    texts = [str(word) for word in items]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more if texts else None
