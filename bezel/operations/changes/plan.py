"""Plan and outcome of a change: what it does, costs, destroys and may lose, and what it was made from.

Owns the models that both faces show and that a confirmation is bound to. Leaves out tokens (`confirmations`) and how an
operation makes and carries out its plan.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from bezel.engine.outcomes import Exit
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result, Usd
from bezel_base.ending_signals import INTERRUPTED
from bezel_base.terminal.blocks import Block, Line

Op = Literal["create", "update", "replace", "delete"]
Verdict = Literal["done", "unchanged", "failed", "cancelled"]
_SIGNS = {"create": "+", "update": "~", "replace": "+-", "delete": "-"}
_LONGEST = 4000
_MOST_LINES = 50


class PlannedChange(Result):
    """A change of one thing in the cloud."""

    op: Op
    name: str = Field(description="its name in the program, or in the cloud where no program declares it")
    type: str = Field(description="its type, e.g. gcp:cloudrunv2/service:Service")
    properties: tuple[str, ...] = Field(
        (), description="paths of the changed properties; empty for new and deleted ones"
    )

    @property
    def line(self) -> str:
        """The change as a line."""
        paths = f": {', '.join(self.properties)}" if self.properties else ""
        return f"{_SIGNS[self.op]:<2} {self.name} ({self.type}){paths}"


class Price(Result):
    """Price of a stack's accelerators. An unknown amount is null."""

    usd_per_hour: Usd | None = Field(description="with everything running")
    usd_per_month: Usd | None = Field(description="at most: all instances for 730 hours, a lease until its end")
    usd_per_hour_idle: Usd | None = Field(description="without traffic: minimum instances, and all leased machines")
    missing: tuple[str, ...] = Field((), description="what is unknown, e.g. a price row")


class Plan(Result):
    """What a changing operation will do. Nothing has been changed yet."""

    operation: str = Field(description="name of the operation")
    target: str = Field(description="what is changed: the name of a stack, a secret, a quota or a lease")
    summary: str = Field(description="the change in one line")
    arguments: Mapping[str, Any] = Field(description="arguments that it was planned with")
    changes: tuple[PlannedChange, ...] = ()
    file_change: str | None = Field(None, description="difference of the stack's file, as a unified diff")
    price: str | None = Field(None, description="price before -> after, by hour, month and idle, as one line")
    price_before: Price | None = Field(None, description="price before; null where it was not determined")
    price_after: Price | None = Field(None, description="price after; null where it was not determined")
    destroyed: tuple[str, ...] = Field((), description="what is destroyed, by name; a replaced one is made anew")
    staying: tuple[str, ...] = Field((), description="what stays in the cloud, why, and what it costs in a month")
    lost: tuple[str, ...] = Field((), description="what could be lost and is not made anew")
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = Field((), description="what is worth knowing and asks for nothing, e.g. the use of quotas")
    refusals: tuple[str, ...] = Field((), description="why it cannot be confirmed; empty where it can")
    confirm_name: str | None = Field(None, description="name that the confirmation has to repeat; null if none")
    basis: Mapping[str, str] = Field(description="digests and names that the plan depends on")
    is_empty: bool = Field(default=False, description="whether there is nothing to change")

    @property
    def digest(self) -> str:
        """Digest of the whole plan."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def exit_code(self) -> Literal[Exit.DONE, Exit.REFUSED]:
        """REFUSED if it cannot be confirmed."""
        return Exit.REFUSED if self.refusals else Exit.DONE

    def page(self) -> Iterator[Block]:
        """The plan for a terminal; what costs and what is lost comes first."""
        lines = [f"{_words(self.operation)} {self.target}: {self.summary}"]
        lines += [f"price: {self.price}"] if self.price else []
        lines += [f"destroyed: {name}" for name in self.destroyed]
        lines += [f"stays: {what}" for what in self.staying]
        lines += [f"could be lost: {what}" for what in self.lost]
        lines += [f"  {change.line}" for change in self.changes]
        yield from map(Line, lines)
        yield from (Line(f"  {line}", is_verbatim=True) for line in (self.file_change or "").splitlines())
        lines = [f"note: {text}" for text in self.notes]
        lines += [f"warning: {text}" for text in self.warnings]
        lines += [f"refused: {text}" for text in self.refusals]
        yield from map(Line, lines)


class Outcome(Result):
    """What became of a confirmed plan."""

    operation: str
    target: str
    verdict: Verdict
    changes: tuple[PlannedChange, ...] = Field((), description="what was changed, as far as it came")
    price: str | None = Field(None, description="price before -> after, as one line")
    url: str | None = Field(None, description="address of the endpoint")
    details: tuple[str, ...] = Field((), description="what was done besides, and what to do next")
    problems: tuple[str, ...] = Field((), description="what failed, with its repair")

    @property
    def exit_code(self) -> Literal[Exit.DONE, Exit.FAILED, 130]:
        """0 if it was done or there was nothing to do."""
        if self.verdict == "cancelled":
            return INTERRUPTED
        return Exit.DONE if self.verdict in {"done", "unchanged"} else Exit.FAILED

    def page(self) -> Iterator[Block]:
        """The outcome for a terminal."""
        lines = [f"{_words(self.operation)} {self.target}: {self.verdict}"]
        lines += [f"  {change.line}" for change in self.changes]
        lines += [f"price: {self.price}"] if self.price else []
        lines += [f"url: {self.url}"] if self.url else []
        lines += [*self.details, *(f"problem: {text}" for text in self.problems)]
        yield from map(Line, lines)


def _words(operation: str) -> str:
    """An operation as its command has it, e.g. `weights copy`."""
    return operation.replace("_", " ")


def plain(text: str) -> str:
    """A text of a program, a policy or a cloud: bounded, without control characters and without credentials."""
    return "\n".join(clean_text(text, _LONGEST).splitlines()[:_MOST_LINES])


def plain_all(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts as of `plain`, each once, at most 50."""
    return tuple(dict.fromkeys(map(plain, texts)))[:_MOST_LINES]
