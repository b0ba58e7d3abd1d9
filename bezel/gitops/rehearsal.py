"""Rehearsal of a stack: deployed on the embedded cloud with the policy packs, checked, measured and destroyed again.

Needs no account and no secret, so it may run for everybody's change, a fork's included. Runs `bezel local`, as a user
does; owns what its result means and its report. Leaves out the place where it runs (`rehearsal_place`).
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bezel.engine.changes.figure_lines import latency_names, rates_of
from bezel.engine.events.reader import read_events
from bezel.engine.events.values import Events, Violation
from bezel.engine.local.project_places import run_folder
from bezel.engine.outcomes import Exit
from bezel.engine.project.pack_limits import PACKS
from bezel.engine.project.pipeline_file import REQUIRED_PACKS
from bezel.engine.project.project import Project
from bezel.gitops.judge.base import BaseJudge
from bezel.gitops.judge.document import KEY, text_lines
from bezel.gitops.rehearsal_place import OutOfTimeError, Place, place
from bezel.planner.base.environments import THROW_AWAY
from bezel.planner.base.problems import setting
from bezel.resource_cost.price_line import price_now
from bezel.resource_cost.stack_cost import StackCost, stack_cost
from bezel_base.text.markdown import code, prose

SECONDS = 900.0
SPEED = 600.0
_LONGEST = 2000
"""Characters of a problem that are shown."""
_EXITS: Mapping[str, Literal[Exit.DONE, Exit.FAILED, Exit.REFUSED]] = {
    "passed": Exit.DONE,
    "failed": Exit.FAILED,
    "refused": Exit.REFUSED,
}
_PROTECTION = "deletion_protection"


@dataclass(frozen=True)
class Rehearsal:
    """Report of a rehearsal.

    Attributes:
        stack: The stack's name.
        verdict: "passed", "refused" by a mandatory policy, or "failed".
        seconds: How long it took.
        smoke: The verdict of the checks after the deploy; None where it did not come to them.
        figures: What the short benchmark measured on a simulated server; None where there are none.
        price: What the stack costs on Google; None where nothing was planned.
        violations: What the policy packs report.
        problems: Why it failed.
        project: Name of the Pulumi project.
        judge: How what judges differs from the base; None where it does not.
    """

    stack: str
    verdict: str = "failed"
    seconds: float = 0.0
    smoke: Mapping[str, object] | None = None
    figures: Mapping[str, object] | None = None
    price: StackCost | None = None
    violations: tuple[Violation, ...] = ()
    problems: tuple[str, ...] = ()
    project: str = ""
    judge: Mapping[str, object] | None = None

    @property
    def exit_code(self) -> Literal[Exit.DONE, Exit.FAILED, Exit.REFUSED]:
        """The command's exit code."""
        return _EXITS[self.verdict]

    def as_json(self) -> dict[str, object]:
        """The content as JSON."""
        return {
            "kind": "rehearsal",
            "project": self.project,
            "stack": self.stack,
            "verdict": self.verdict,
            "seconds": round(self.seconds, 1),
            "smoke": self.smoke,
            "figures": None if self.figures is None else {**self.figures, "kind": "simulated"},
            "price": None if self.price is None else self.price.as_json(),
            "violations": [
                {
                    "pack": violation.pack,
                    "policy": violation.policy,
                    "level": violation.level,
                    "resource": violation.resource,
                    "message": violation.message,
                }
                for violation in self.violations
            ],
            "problems": list(self.problems),
            **self._judge(),
        }

    def text(self) -> str:
        """The content for a terminal."""
        lines = [f"rehearsal of {self.stack}: {self.verdict} after {self.seconds:.0f} s"]
        lines += text_lines(self._judge())
        lines += [f"  {name}: {value}" for name, value in self._rows()]
        lines += [f"  {_of(violation)}" for violation in self.violations]
        lines += [f"  {problem}" for problem in self.problems]
        return "\n".join(lines) + "\n"

    def markdown(self) -> str:
        """The content for the forge."""
        lines = [f"### Rehearsal of {code(self.stack)}: {self.verdict}", ""]
        lines += [f"- {code(line, _LONGEST)}" for line in text_lines(self._judge())]
        lines += [f"- {name}: {prose(value, _LONGEST)}" for name, value in self._rows()]
        lines += [f"- {code(_of(violation), _LONGEST)}" for violation in self.violations]
        lines += [f"- {code(problem, _LONGEST)}" for problem in self.problems]
        lines += [f"- took {self.seconds:.0f} s, without credentials; nothing was created on Google", ""]
        return "\n".join(lines)

    def _judge(self) -> dict[str, object]:
        return {} if self.judge is None else {KEY: dict(self.judge)}

    def _rows(self) -> list[tuple[str, str]]:
        rows = []
        if self.price is not None:
            rows.append(("price", price_now(self.price)))
        if self.smoke is not None:
            rows.append(("checks", _checks(self.smoke)))
        if self.figures is not None:
            rows.append(("figures (simulated)", _figures(self.figures)))
        return rows


def rehearse(
    project: Project,
    stack: str,
    *,
    seconds: float = SECONDS,
    speed: float = SPEED,
    judge: BaseJudge | None = None,
) -> Rehearsal:
    """Deploy the stack on an embedded cloud of its own, check it, and destroy it.

    The embedded cloud is that of this process, and so is its verdict: a rehearsal shows that a change works. The packs
    and limits are those of the judge.

    Args:
        project: The project.
        stack: The stack's name.
        judge: The base whose packs judge; by default the checkout itself.
        seconds: Time limit of the whole.
        speed: Factor by which waits for the platform are shortened.

    Raises:
        UserError: There is no such stack.
    """
    project.stack_file(stack)
    started = time.monotonic()
    judge = judge or BaseJudge(project)
    with place(seconds) as rehearsal_place, judge.folder() as packs:
        report = _Rehearsing(project, stack, rehearsal_place, speed, packs.absolute()).run(seconds)
    return replace(report, seconds=time.monotonic() - started, project=project.name, judge=judge.as_json())


@dataclass
class _Rehearsing:
    """One rehearsal under way."""

    project: Project
    stack: str
    place: Place
    speed: float
    judge: Path

    def run(self, seconds: float) -> Rehearsal:
        view, doing = self._view(), "deploying"
        try:
            code, _ = self._local(view, "up", *self._packs(), f"--event-log={self.place.events}")
            report = self._report(code)
            if code == 0:
                doing = "reading the outputs"
                report = self._with_outputs(view, report)
                doing = "destroying"
                report = self._destroy(view, report)
        except OutOfTimeError:
            problem = f"the deadline of {seconds:g} s passed while {doing}; the embedded cloud was removed"
            report = self._report(1)
            report = replace(report, verdict="failed", problems=(*report.problems, problem))
        return report

    def _report(self, code: int) -> Rehearsal:
        # A run that did not end well left the engine's own record, and perhaps no copy.
        record = run_folder(self.place.cloud, self.project.name, self.stack) / "events.jsonl"
        events = read_events(self.place.events if self.place.events.exists() else record)
        # A preview and an update report the same violation.
        violations = tuple(dict.fromkeys(events.violations))
        refused = any(violation.refuses for violation in violations)
        price = stack_cost(events.after.values()) if events.after else None
        verdict = "refused" if refused else "passed" if code == 0 else "failed"
        problems = () if verdict != "failed" else _problems(events, code)
        return Rehearsal(self.stack, verdict, price=price, violations=violations, problems=problems)

    def _with_outputs(self, view: Path, report: Rehearsal) -> Rehearsal:
        code, text = self._local(view, "outputs", output=subprocess.PIPE)
        outputs = json.loads(text) if code == 0 else {}
        smoke = outputs.get("smoke") or {}
        report = replace(report, smoke=smoke.get("verdict"), figures=smoke.get("figures"))
        if report.verdict == "passed" and not (report.smoke or {}).get("ok"):
            problem = "the checks after the deploy did not pass" if report.smoke else "the stack ran no checks"
            return replace(report, verdict="failed", problems=(*report.problems, problem))
        return report

    def _destroy(self, view: Path, report: Rehearsal) -> Rehearsal:
        """Destroy the stack; one that is protected is released first, by the edit that a user would make."""
        if self.project.configuration(self.stack).get("environment", THROW_AWAY) != THROW_AWAY:
            self._release(view)
            self._local(view, "up")
        code, _ = self._local(view, "down")
        if code == 0:
            return report
        problem = "the stack was deployed, and its destroy failed: see the log above"
        return replace(report, verdict="failed", problems=(*report.problems, problem))

    def _view(self) -> Path:
        """The project as links, so that the stack file can be changed and nothing is written beside the program."""
        view = self.place.folder / "project"
        view.mkdir(mode=0o700)
        for entry in self.project.folder.iterdir():
            (view / entry.name).symlink_to(entry.absolute())
        return view

    def _release(self, view: Path) -> None:
        file = view / f"Pulumi.{self.stack}.yaml"
        import yaml  # late: only a protected stack needs it

        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        content["config"][setting(_PROTECTION)] = "never"
        file.unlink()
        file.write_text(yaml.safe_dump(content))

    def _packs(self) -> list[str]:
        return [f"--policy-pack={self.judge / PACKS / pack}" for pack in REQUIRED_PACKS]

    def _local(self, view: Path, action: str, *options: str, output: int | None = None) -> tuple[int, str]:
        """Run `bezel local`; its output goes to standard error, since the report is the command's result."""
        command = [str(Path(sys.executable).parent / "bezel"), "local", action, self.stack]
        command += [
            "--dir",
            str(self.place.cloud),
            "--speed",
            f"{self.speed:g}",
            *(["--", *options] if options else []),
        ]
        return self.place.run(command, folder=view, output=sys.stderr.fileno() if output is None else output)


def _problems(events: Events, code: int) -> tuple[str, ...]:
    texts = [item.message for item in events.diagnostics if item.severity == "error"]
    return tuple(dict.fromkeys(texts)) or (f"the deploy ended with exit code {code}: see the log above",)


def _of(violation: Violation) -> str:
    return f"[{violation.level}] {violation.policy}, {violation.resource}: {violation.message}"


def _checks(smoke: Mapping[str, object]) -> str:
    checks = smoke.get("checks")
    names = ", ".join(sorted(checks)) if isinstance(checks, Mapping) else ""
    return f"{'passed' if smoke.get('ok') else 'failed'}{f' ({names})' if names else ''}"


def _figures(figures: Mapping[str, object]) -> str:
    def median(name: str) -> str:
        value = figures.get(name)
        milliseconds = value.get("p50") if isinstance(value, Mapping) else None
        return "not measured" if milliseconds is None else f"{milliseconds} ms"

    latencies = [f"{name.removesuffix('_ms')} p50 {median(name)}" for name in latency_names(figures)]
    return ", ".join([*latencies, *rates_of(figures)])
