"""Report of what is over: stacks, leases and leftovers, what became of each, and what could not be looked at."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Literal

from bezel.engine.outcomes import Exit
from bezel.planner.base.expiry import NEVER
from bezel.planner.base.money import round_usd
from bezel.upkeep.expiry_plan import ExpiryPlan
from bezel.upkeep.findings import Finding
from bezel_base.text.markdown import code


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
        nothing = "nothing of what was looked at is over" if self.problems else "nothing is over"
        lines = [f"{_what(finding, str)}\n  {_action(finding)}" for finding in self.findings] or [nothing]
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
    if finding.kind in {"bucket", "repository", "secret"}:
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
