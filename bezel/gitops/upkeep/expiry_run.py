"""Expiry run: destroys what its plan allows, each stack under its lock, and reports what became of everything.

Only stacks of this backend in dev and their ended leases are destroyed. Leaves out the plan (`expiry_plan`).
"""

import os
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import date
from decimal import Decimal
from typing import Literal

from bezel.engine.changes.locked_run import run_locked
from bezel.engine.locks.held import HeldLock
from bezel.engine.outcomes import Exit
from bezel.engine.project.project import Project
from bezel.engine.run.stack import deployed_engine
from bezel.gitops.upkeep.expiry_plan import ExpiryPlan, stack_of
from bezel.gitops.upkeep.findings import Finding, stack_finding
from bezel.leases.inventory import LeaseInventory
from bezel.planner.base.expiry import NEVER
from bezel.planner.base.money import round_usd
from bezel_base.console import note
from bezel_base.errors import UserError, one_line
from bezel_base.text.markdown import code

_LONGEST = 500


def destroy(
    plan: ExpiryPlan,
    project: Project,
    inventory: LeaseInventory | None,
    locked: Callable[[str], AbstractContextManager[HeldLock]],
    today: date,
) -> None:
    """Destroy what the plan allows, and note in it what became of each.

    Args:
        plan: The plan, as it was shown.
        project: The Pulumi project.
        inventory: Deletes leases; None where none were listed.
        locked: Holds a stack's lock.
        today: The day in UTC.
    """
    for number, finding in enumerate(plan.findings):
        if not finding.may_destroy:
            continue
        note(f"destroying {finding.kind} {finding.name}")
        try:
            if finding.kind == "stack":
                with locked(finding.name) as lock:
                    outcome = _destroy_stack(project, finding.name, lock, today, plan.protected)
            elif finding.kind == "lease" and inventory is not None:
                failed = inventory.sweep([plan.leases[finding.place, finding.name]])
                outcome = next(iter(failed.values()), "destroyed")
            else:
                continue
        except UserError as error:
            outcome = one_line(error)
        plan.findings[number] = finding.with_outcome(outcome)


def _destroy_stack(project: Project, name: str, lock: HeldLock, today: date, protected: Collection[str]) -> str:
    """Destroy a stack under its lock, unless a deploy has given it a later day; what became of it.

    Raises:
        UserError: The stack cannot be read, or its `expires-at` is malformed by now.
    """
    with deployed_engine(project, name, os.environ) as prepared:
        if prepared is None:
            return "its state is gone from the backend since the plan was made"
        try:
            finding = stack_finding(stack_of(project, name, prepared.state), today, protected)
        except ValueError as error:
            raise UserError(f"its expires-at cannot be read any more: {error}") from None
        if finding is None or not finding.may_destroy:
            return "a deploy has changed it since the plan was made: it may not be destroyed now"
        done = run_locked(prepared.engine, "destroy", lock)
    if done.run.ok:
        return "destroyed"
    return "; ".join([*done.run.errors, *([done.problem] if done.problem else [])])[:_LONGEST] or "the engine failed"


@dataclass(frozen=True)
class ExpiryReport:
    """What is over, what became of it, and what could not be looked at."""

    findings: tuple[Finding, ...]
    kept: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: ExpiryPlan) -> "ExpiryReport":
        """The report of a plan, before or after it was carried out."""
        return cls(tuple(plan.findings), dict(plan.kept), tuple(plan.problems))

    @property
    def exit_code(self) -> Literal[Exit.DONE, Exit.FAILED]:
        """FAILED if something could not be looked at, or not be destroyed."""
        failed = any(finding.outcome not in {"", "destroyed"} for finding in self.findings)
        return Exit.FAILED if failed or self.problems else Exit.DONE

    @property
    def is_well(self) -> bool:
        """Whether nothing is left to do."""
        return not self.problems and not any(finding.is_left for finding in self.findings)

    def as_json(self) -> dict[str, object]:
        """The content as JSON."""
        findings = [asdict(finding) | {"may_destroy": finding.may_destroy} for finding in self.findings]
        return {"kind": "expiry", "findings": findings, "kept": self.kept, "problems": list(self.problems)}

    def text(self) -> str:
        """The content for a terminal."""
        lines = [f"{_what(finding, str)}\n  {_action(finding)}" for finding in self.findings] or ["nothing is over"]
        lines += [f"{stack}: needed until {day} in UTC" for stack, day in self._stacks_with_date()]
        return "".join(f"{line}\n" for line in [*lines, *self.problems])

    def markdown(self) -> str:
        """The content for the forge."""
        left = sum(finding.is_left for finding in self.findings)
        lines = [f"**Expiry**: {left} left, {len(self.findings) - left} destroyed."]
        lines += ["", *(f"- {_what(finding, code)}. {_action(finding)}" for finding in self.findings)]
        lines += [f"- {code(stack)}: needed until {day} in UTC" for stack, day in self._stacks_with_date()]
        if self.problems:
            lines += ["", "Not looked at:", "", *(f"- {code(problem)}" for problem in self.problems)]
        return "\n".join(lines) + "\n"

    def _stacks_with_date(self) -> list[tuple[str, str]]:
        return [(stack, day) for stack, day in self.kept.items() if day not in {"", NEVER}]


def _what(finding: Finding, quoted: Callable[[object], str]) -> str:
    place = f" in {finding.place}" if finding.place else ""
    hourly = None if finding.hourly_usd is None else round_usd(Decimal(finding.hourly_usd), 4)
    price = "price unknown" if hourly is None else f"{hourly} USD/h at most"
    if finding.kind in {"bucket", "repository"}:
        price = "storage is not priced"
    return f"{finding.kind} {quoted(finding.name)}{place} ({price}): {finding.why}"


def _action(finding: Finding) -> str:
    if finding.outcome == "destroyed":
        return "Destroyed."
    if finding.outcome:
        return f"Not destroyed: {finding.outcome} Run {finding.repair}."
    if finding.may_destroy:
        return f"To be destroyed by `bezel ci expire --yes`, or run {finding.repair}."
    return f"Reported only, since {finding.kept_because}: {finding.repair}."
