"""Preview of a stack as a report: what would change, what it costs, and whether the policies and the price allow it.

Needs read rights only. The verdict is `allowed` only if the program succeeded, every policy pack evaluated all of the
stack, none refuses, and every accelerator has a price. Leaves out the wording (`report`), and what a pipeline stores of
a preview (bezel.gitops.review).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bezel.engine.changes.figure_lines import fit_line
from bezel.engine.changes.limits import bounds_of, instance_hourly, limits_in, limits_line
from bezel.engine.changes.planned import changed_outputs, digest, planned_changes
from bezel.engine.changes.report import ChangeReport, Kind
from bezel.engine.changes.settings import deployed_settings, setting_changes
from bezel.engine.events.values import Violation
from bezel.engine.project.checkout import Checkout
from bezel.engine.project.pipeline_file import REQUIRED_PACKS
from bezel.engine.project.project import Project
from bezel.engine.run.engine import EngineRun, check_packs
from bezel.engine.run.policy_packs import configurations
from bezel.engine.run.stack import StackEngine
from bezel.engine.state.exported import resources_of, state_digest
from bezel.planner.base.repairs import lowest_numbers, within
from bezel.resource_cost.price_line import unpriced_problem
from bezel.resource_cost.stack_cost import resources_in, stack_cost
from bezel_base.errors import UserError
from bezel_catalog import Model

ADVISORY_PACKS = ("price",)


@dataclass(frozen=True)
class Previewed:
    """A preview: its report, the engine's plan where it made one, and the stack's outputs, masked."""

    report: ChangeReport
    plan: Path | None
    outputs: Mapping[str, Any] = field(default_factory=dict)


def packs_of(project: Project, named_packs: Sequence[Path], place: Path | None = None) -> list[Path]:
    """The policy packs of a run: the given ones, else the project's own; a required one is named even if missing.

    Args:
        project: The project.
        named_packs: Packs that the caller names.
        place: The folder that judges in place of the project's: what is named in the project is taken from there.
    """
    here = project.folder.absolute()
    place = here if place is None else place.absolute()
    if named_packs:
        packs = [pack.expanduser().absolute() for pack in named_packs]
        return [place / pack.relative_to(here) if pack.is_relative_to(here) else pack for pack in packs]
    folder = place / "policies"
    advisory = [folder / name for name in ADVISORY_PACKS if (folder / name / "PulumiPolicy.yaml").is_file()]
    return [*(folder / name for name in REQUIRED_PACKS), *advisory]


def preview_on(
    prepared: StackEngine, checkout: Checkout, packs: Sequence[Path], folder: Path, kind: Kind = "preview"
) -> Previewed:
    """Preview a stack on an engine, without saving anything.

    Args:
        prepared: The engine, with the state that the changes start from.
        checkout: The checkout.
        packs: Policy packs; all of them must evaluate the stack.
        folder: A folder for the engine's plan.
        kind: The kind of the report.
    """
    engine, state = prepared.engine, prepared.state
    report = ChangeReport(kind, engine.stack, checkout.tree, checkout.commit, state_digest(state))
    report.uncommitted = checkout.changed
    report.project = engine.project.name
    report.before = stack_cost(resources_in(resources_of(state)))
    report.changes_digest = digest(())
    try:
        check_packs(packs)
    except UserError as error:
        report.verdict = "refused"
        report.problems += map(str, error.problems)
        return Previewed(report, None)
    plan = folder / "plan.json"
    run = engine.run("preview", packs=packs, save_plan=plan)
    fill(report, run)
    configuration = engine.project.configuration(engine.stack)
    report.settings = setting_changes(deployed_settings(state), configuration)
    if report.verdict == "failed":
        files = map(Path, configurations(engine.pack_options(packs)))
        keep_to_limits(report, configuration, files, _models_of(engine.project))
    return Previewed(report, plan if plan.is_file() else None, run.events.outputs or {})


def _models_of(project: Project) -> Mapping[str, Model]:
    """The project's own models; none where their file has problems, which the preview has shown."""
    try:
        return project.models()
    except UserError:
        return {}


def judge(report: ChangeReport, run: EngineRun) -> None:
    """Set the verdict of a report, with its reasons: refused if a policy or the price says so, else by the run."""
    unable = run.packs_unable
    refusing = [item for item in run.violations if item.refuses]
    missing = report.after.missing if report.after else ()
    report.problems += [f"a policy pack did not evaluate the stack, so nothing passes: {text}" for text in unable]
    report.problems += map(unpriced_problem, missing)
    if unable or refusing:
        report.verdict = "refused"
    elif not run.ok:
        report.verdict = "failed"
        report.problems += run.errors or [f"the engine ended with exit code {run.end.code}"]
    else:
        report.verdict = "refused" if missing else "allowed"


def fill(report: ChangeReport, run: EngineRun) -> None:
    """Fill a report from a preview: changes, price, what the policies and the program say, and the verdict."""
    events = run.events
    report.changes, report.violations = run.changes, with_one_repair(run.violations)
    report.planned = planned_changes(run.changes)
    report.changes_digest = digest(report.planned)
    # A program that failed has not declared every resource: a sum of the others would be too low. The packs evaluate
    # the whole stack once the program has ended well.
    is_whole = events.complete and (run.ok or bool(events.analysed))
    report.after = stack_cost(events.after.values()) if is_whole else None
    outputs = events.outputs or {}
    report.outputs = changed_outputs(events.old_outputs, events.outputs)
    report.fit = _fit(outputs.get("plan"))
    warnings = run.facts.get("quota_warning", ())
    report.quota_warnings = _lines(warnings)
    report.rollbacks = _lines(run.facts.get("rollback", ()))
    report.notes += report.rollbacks
    report.quota = _lines([*run.facts.get("quota_use", ()), *warnings])
    judge(report, run)


def with_one_repair(violations: Sequence[Violation]) -> tuple[Violation, ...]:
    """Violations whose repairs name one number for one value of a resource: the lowest, which all policies allow."""
    messages: dict[str, list[str]] = {}
    for item in violations:
        messages.setdefault(item.urn, []).append(item.message)
    lowest = {urn: lowest_numbers(texts) for urn, texts in messages.items()}
    return tuple(replace(item, message=within(item.message, lowest[item.urn])) for item in violations)


def keep_to_limits(
    report: ChangeReport,
    configuration: Mapping[str, object],
    files: Iterable[Path],
    models: Mapping[str, Model] | None = None,
) -> None:
    """Let the repairs of a plan that failed keep to the limits that the packs compare next.

    Args:
        report: of the preview.
        configuration: of the stack.
        files: the packs' configurations.
        models: the project's own models.
    """
    environment = configuration.get("environment")
    if limits := limits_in(files, environment):
        bounds = bounds_of(limits, instance_hourly(configuration, report.stack, models))
        report.problems = [within(text, bounds) for text in report.problems]
        report.notes.append(limits_line(limits, environment))


def _lines(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts as one line each, each once."""
    return tuple(dict.fromkeys(" ".join(text.split()) for text in texts if text.strip()))


def _fit(plan: object) -> str | None:
    """How the model fits, from the plan among the stack's outputs."""
    fit: Any = plan.get("fit") if isinstance(plan, Mapping) else None
    return fit_line(fit) if isinstance(fit, Mapping) else None
