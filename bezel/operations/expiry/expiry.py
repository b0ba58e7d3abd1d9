"""Expiry of stacks, leases and leftovers: what ends when, and what is over. Destroys nothing.

What could not be looked at is a problem of the result, never an empty list. A later end is an edit of the stack's file
(`expires-at`) and a deploy. Leaves destroying to `bezel ci expire`.
"""

from typing import Literal

from pydantic import Field

from bezel.engine.outcomes import Exit
from bezel.engine.project.project import cloud_project_of
from bezel.leases.inventory import new_client
from bezel.operations.arguments.model import Arguments
from bezel.operations.context import Context
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.planner.base.expiry import EXPIRY
from bezel.upkeep.expiry_plan import make_plan
from bezel.upkeep.expiry_report import ExpiryReport
from bezel.upkeep.findings import Finding

_MOST, _TEXT = 200, 600


class ExpiryArguments(Arguments):
    """Nothing."""


class OverItem(Result):
    """A thing that is over."""

    kind: str = Field(description="stack, lease, service, account, bucket, secret or repository")
    name: str
    place: str | None = Field(description="its zone or region")
    why: str
    kept_because: str | None = Field(description="why `bezel ci expire` does not destroy it; null if it may")
    usd_per_hour: str | None = Field(description="price of an hour in USD, decimal; null if unknown")
    repair: str


class NeededStack(Result):
    """A deployed stack that is not over."""

    stack: str
    expires_at: str | None = Field(description="last day in UTC, or never; null without one")


class Expiry(Result):
    """What is over, what ends when, and what was not judged."""

    over: tuple[OverItem, ...]
    needed: tuple[NeededStack, ...]
    problems: tuple[str, ...] = Field(description="what was not looked at, and why")
    shown: str = Field(exclude=True, repr=False)

    @property
    def exit_code(self) -> Literal[Exit.DONE, Exit.FAILED]:
        """FAILED if something could not be looked at."""
        return Exit.FAILED if self.problems else Exit.DONE

    def text(self) -> str:
        """The report of `bezel ci expire`, and how a stack is kept longer."""
        return self.shown


def expiry(context: Context, _arguments: ExpiryArguments) -> Expiry:
    """What is over in this project."""
    with new_client(context.clock) as client:
        plan = make_plan(
            context.project,
            cloud_project_of(context.environ),
            context.clock,
            client,
            show=context.show,
            environ=context.environ,
        )
    longer = f"to keep a stack longer: `bezel stack edit STACK --set labels.{EXPIRY}=YYYY-MM-DD`, then deploy it\n"
    return Expiry(
        over=tuple(map(_item_of, plan.findings[:_MOST])),
        needed=tuple(
            NeededStack(stack=clean_text(stack, _TEXT), expires_at=clean_text(day, _TEXT) or None)
            for stack, day in list(plan.kept.items())[:_MOST]
        ),
        problems=tuple(clean_text(text, _TEXT) for text in plan.problems[:_MOST]),
        shown=ExpiryReport.of(plan).text() + longer,
    )


def _item_of(finding: Finding) -> OverItem:
    return OverItem(
        kind=finding.kind,
        name=clean_text(finding.name, _TEXT),
        place=finding.place or None,
        why=clean_text(finding.why, _TEXT),
        kept_because=clean_text(finding.kept_because, _TEXT) or None,
        usd_per_hour=finding.hourly_usd,
        repair=finding.repair,
    )
