"""Drift of a stack: where the cloud and its program differ, and what was changed outside of it. Writes nothing.

A preview of the engine that first reads the cloud, which takes a minute or more. Leaves the meaning of its events to
bezel.upkeep, and all stacks together with their report on a forge to `bezel ci drift`.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from bezel.engine.outcomes import Exit
from bezel.engine.run.stack import StackEngine, deployed_engine
from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import Stack
from bezel.operations.changes.stack_lock import check_cancelled
from bezel.operations.changes.stack_runs import quiet
from bezel.operations.context import Context
from bezel.operations.outside import outside_of
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.outside_changes.change import Findings
from bezel.outside_changes.declared import Entry, declared_in
from bezel.upkeep.drift import PropertyDrift, ResourceDrift, StackDrift, Verdict, drift_of
from bezel.upkeep.drift_report import DriftReport
from bezel_base.errors import format_value

Cause = Literal["outside", "not deployed", "follows", "rollback"]
_MOST, _MOST_PROPERTIES, _MOST_LINES = 100, 30, 1000
_SECONDS = 60.0
_LINE, _TEXT = 300, 1000


class DriftArguments(Arguments):
    """Which stack."""

    stack: Stack


class DriftedProperty(Result):
    """A property that differs."""

    path: str
    cloud: str = Field(description="value in the cloud; `not set` without one")
    program: str = Field(description="value in the program; `not set` without one")


class DriftedResource(Result):
    """A resource that a deploy would change."""

    name: str = Field(description="name in the program")
    type: str
    op: str = Field(
        description="what a deploy would do, of an outside change one that reads the cloud, "
        "`pulumi up --refresh`: create, update, replace or delete"
    )
    cause: Cause = Field(
        description="outside: changed outside of the program; not deployed: the program was changed; follows: depends "
        "on another one that differs; rollback: the rollback of its service"
    )
    properties: tuple[DriftedProperty, ...] = Field(description="at most 30; empty where it is on one side only")
    changed_by: str | None = Field(description="who changed it last; null where its API does not say")
    changed_at: str | None = Field(description="when; null where its API does not say")


class DriftedSetting(Result):
    """A setting that costs money or opens access, and that nothing declares so."""

    what: str = Field(description="resource, setting, live value and declared value")
    repair: str


class Drift(Result):
    """Drift of a stack."""

    stack: str
    verdict: Verdict = Field(description="unknown where the cloud could not be read in full, or the program failed")
    resources: tuple[DriftedResource, ...] = Field(description="at most 100")
    outside: tuple[DriftedSetting, ...] = Field(description="settings that the engine does not compare")
    not_judged: tuple[str, ...] = Field(description="settings that could not be read, each with the reason")
    problems: tuple[str, ...] = Field(description="why the verdict is unknown")
    shown: str = Field(exclude=True, repr=False)

    @property
    def exit_code(self) -> Literal[Exit.DONE, Exit.FAILED, Exit.DRIFTED]:
        """As of `bezel ci drift`."""
        return {"unknown": Exit.FAILED, "drifted": Exit.DRIFTED}.get(self.verdict, Exit.DONE)  # type: ignore[return-value]

    def text(self) -> str:
        """The report of `bezel ci drift`."""
        return self.shown


def drift(context: Context, arguments: DriftArguments) -> Drift:
    """The drift of a stack.

    Raises:
        ProjectError: There is no such stack file.
        CancelledError: The caller gave up.
    """
    stack = arguments.stack
    context.project.stack_file(stack)

    def read_outside(entries: Sequence[Entry]) -> Findings:
        check_cancelled(context)
        return outside_of(context, stack, declared_in(entries), seconds=_SECONDS)

    context.show(f"previewing {stack} against the cloud")
    stack_drift = drift_of(stack, _quiet_engine(context, stack), read_outside)
    check_cancelled(context)
    return result_of(stack_drift)


def result_of(stack_drift: StackDrift) -> Drift:
    """The drift of a stack as a bounded result. Pure."""
    shown = (replace(each, properties=each.properties[:_MOST_PROPERTIES]) for each in stack_drift.resources[:_MOST])
    stack_drift = replace(stack_drift, resources=tuple(shown))
    lines = DriftReport((stack_drift,)).text().splitlines()
    return Drift(
        stack=stack_drift.stack,
        verdict=stack_drift.verdict,
        resources=tuple(map(_resource, stack_drift.resources)),
        outside=tuple(
            DriftedSetting(what=clean_text(change.line(), _TEXT), repair=change.repair)
            for change in stack_drift.outside[:_MOST]
        ),
        not_judged=tuple(clean_text(item.line(), _TEXT) for item in stack_drift.not_judged[:_MOST]),
        problems=tuple(clean_text(text, _TEXT) for text in stack_drift.problems[:_MOST]),
        shown="".join(f"{clean_text(line, _TEXT)}\n" for line in lines[:_MOST_LINES]),
    )


@contextlib.contextmanager
def _quiet_engine(context: Context, stack: str) -> Iterator[StackEngine | None]:
    with deployed_engine(context.project, stack, context.environ) as prepared:
        yield None if prepared is None else StackEngine(quiet(context, prepared.engine), prepared.state)


def _resource(resource: ResourceDrift) -> DriftedResource:
    cause: Literal["outside", "not deployed", "follows", "rollback"] = (
        "outside" if resource.is_outside else "not deployed"
    )
    if resource.follows:
        cause = "follows"
    if resource.rolled_back:
        cause = "rollback"
    return DriftedResource(
        name=clean_text(resource.name, _LINE),
        type=resource.type,
        op=resource.op,
        cause=cause,
        properties=tuple(map(_property, resource.properties)),
        changed_by=clean_text(resource.changed_by, _LINE) or None,
        changed_at=clean_text(resource.changed_at, _LINE) or None,
    )


def _property(item: PropertyDrift) -> DriftedProperty:
    cloud, program = ("not set" if value is None else format_value(value) for value in (item.cloud, item.program))
    return DriftedProperty(path=clean_text(item.path, _LINE), cloud=cloud, program=program)
