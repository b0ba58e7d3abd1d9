"""Preview of a stack for a review: what would change, what it costs, and whether the policies and the price allow it.

Needs read rights only, and in a bucket of states the right to create objects below `plans/`. The verdict is `allowed`
only if the program succeeded, every policy pack evaluated all of the stack, none refuses, and every accelerator has a
price. Leaves out the comparison with an earlier review (`deploy`) and the wording (`change_report`).
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bezel.engine.events.typed_events import Violation
from bezel.engine.project.pipeline_file import REQUIRED_PACKS
from bezel.engine.project.project import Project
from bezel.engine.run.engine import EngineRun, check_packs
from bezel.engine.run.policy_packs import configurations
from bezel.engine.run.stack_engine import StackEngine, stack_engine
from bezel.engine.state.stack_state import resources_of, state_digest
from bezel.engine.state.state_bucket import BACKEND, StateBucket
from bezel.gitops.checkout import Checkout
from bezel.gitops.judge.base import BaseJudge
from bezel.gitops.judge.document import KEY
from bezel.gitops.outcomes import RefusedError
from bezel.gitops.review import reviews
from bezel.gitops.review.change_report import ChangeReport, Kind
from bezel.gitops.review.limits import bounds_of, instance_hourly, limits_in, limits_line
from bezel.gitops.review.planned_changes import changed_outputs, digest, planned_changes
from bezel.gitops.review.setting_changes import deployed_settings, setting_changes
from bezel.outside_changes.rollback import ROLLED_BACK
from bezel.planner.base.repairs import lowest_numbers, within
from bezel.resource_cost.stack_cost import resources_in, stack_cost
from bezel_base.errors import UserError

ADVISORY_PACKS = ("price",)
_QUOTA = "quotas and their use:"


@dataclass(frozen=True)
class Previewed:
    """A preview: its report, the engine's plan where it made one, and the stack's outputs, masked."""

    report: ChangeReport
    plan: Path | None
    outputs: Mapping[str, Any] = field(default_factory=dict)


def packs_of(project: Project, given: Sequence[Path], place: Path | None = None) -> list[Path]:
    """The policy packs of a run: the given ones, else the project's own; a required one is named even if missing.

    Args:
        project: The project.
        given: Packs that the caller names.
        place: The folder that judges in place of the project's: what is named in the project is taken from there.
    """
    here = project.folder.absolute()
    place = here if place is None else place.absolute()
    if given:
        packs = [pack.expanduser().absolute() for pack in given]
        return [place / pack.relative_to(here) if pack.is_relative_to(here) else pack for pack in packs]
    folder = place / "policies"
    advisory = [folder / name for name in ADVISORY_PACKS if (folder / name / "PulumiPolicy.yaml").is_file()]
    return [*(folder / name for name in REQUIRED_PACKS), *advisory]


def preview(
    project: Project,
    stack: str,
    checkout: Checkout,
    packs: Sequence[Path],
    environ: Mapping[str, str],
    judge: BaseJudge | None = None,
) -> ChangeReport:
    """Preview a stack; where the backend is a bucket, save the review of an allowed preview of a clean tree.

    Args:
        project: The project.
        stack: The stack's name.
        checkout: The checkout.
        packs: Policy packs that the caller names; by default those of the project.
        environ: The variables of this process.
        judge: The base that judges; by default the checkout itself.

    Raises:
        UserError: The stack has no file, the backend cannot be used, or the base cannot be exported.
    """
    judge = judge or BaseJudge(project)
    try:
        judge.check(stack)
    except RefusedError as error:
        report = ChangeReport("preview", stack, checkout.tree, checkout.commit, project=project.name)
        report.changes_digest = digest(())
        report.verdict, report.problems = "refused", list(map(str, error.problems))
        report.more[KEY] = judge.as_json()
        return report
    with (
        judge.folder() as place,
        tempfile.TemporaryDirectory(prefix="bezel-plan-") as folder,
        stack_engine(project, stack, environ) as prepared,
    ):
        made = preview_on(prepared, checkout, packs_of(project, packs, place), Path(folder))
        report = made.report
        if said := judge.as_json():
            report.more[KEY] = said
        if state_digest(prepared.present_state()) != report.state_digest:
            report.verdict = "failed"
            report.problems.append("the state changed while the preview ran: another run deployed; preview again")
        if report.verdict == "allowed":
            try:
                _save(project, report, checkout, made.plan, environ)
            except UserError as error:
                report.verdict = "refused" if isinstance(error, RefusedError) else "failed"
                report.problems += map(str, error.problems)
        return report


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
        keep_to_limits(report, configuration, map(Path, configurations(engine.pack_options(packs))))
    return Previewed(report, plan if plan.is_file() else None, run.events.outputs or {})


def judge(report: ChangeReport, run: EngineRun) -> None:
    """Set the verdict of a report, with its reasons: refused if a policy or the price says so, else by the run."""
    unable = run.packs_unable
    refusing = [item for item in run.violations if item.refuses]
    missing = report.after.missing if report.after else ()
    report.problems += [f"a policy pack did not evaluate the stack, so nothing passes: {text}" for text in unable]
    report.problems += [f"the price is unknown, so nothing passes: {text}" for text in missing]
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
    messages = [item.message for item in events.diagnostics]
    tables = [text.removeprefix(_QUOTA).splitlines() for text in messages if text.startswith(_QUOTA)]
    warnings = [item.message for item in events.diagnostics if item.severity == "warning" and "quota" in item.message]
    report.quota_warnings = _lines(warnings)
    report.rollbacks = _lines(text for text in messages if text.startswith(ROLLED_BACK))
    report.notes += report.rollbacks
    report.quota = _lines([*(line for table in tables for line in table), *warnings])
    judge(report, run)


def with_one_repair(violations: Sequence[Violation]) -> tuple[Violation, ...]:
    """Violations whose repairs name one number for one value of a resource: the lowest, which all policies allow."""
    messages: dict[str, list[str]] = {}
    for item in violations:
        messages.setdefault(item.urn, []).append(item.message)
    lowest = {urn: lowest_numbers(texts) for urn, texts in messages.items()}
    return tuple(replace(item, message=within(item.message, lowest[item.urn])) for item in violations)


def keep_to_limits(report: ChangeReport, configuration: Mapping[str, object], files: Iterable[Path]) -> None:
    """Let the repairs of a plan that failed keep to the limits that the packs compare next.

    Args:
        report: of the preview.
        configuration: of the stack.
        files: the packs' configurations.
    """
    environment = configuration.get("environment")
    if limits := limits_in(files, environment):
        bounds = bounds_of(limits, instance_hourly(configuration, report.stack))
        report.problems = [within(text, bounds) for text in report.problems]
        report.notes.append(limits_line(limits, environment))


def _lines(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts as one line each, each once."""
    return tuple(dict.fromkeys(" ".join(text.split()) for text in texts if text.strip()))


def _fit(plan: object) -> str | None:
    """How the model fits, from the plan among the stack's outputs."""
    fit: Any = plan.get("fit") if isinstance(plan, Mapping) else None
    names = ("weights_gib", "kv_cache_gib", "budget_gib", "full_context_sequences", "max_model_len")
    if not isinstance(fit, Mapping) or any(name not in fit for name in names):
        return None
    weights, cache, budget, sequences, length = (fit[name] for name in names)
    return (
        f"{weights} GiB of weights and {cache} GiB for the KV cache, of {budget} GiB: {sequences} sequences of "
        f"{length} tokens fit"
    )


def _save(
    project: Project, report: ChangeReport, checkout: Checkout, plan: Path | None, environ: Mapping[str, str]
) -> None:
    """Store the review, or note why not."""
    url = environ.get(BACKEND, "")
    if not url.startswith("gs://"):
        report.notes.append("not saved for a deploy: the state's backend is not a bucket (gs://BUCKET)")
        return
    if not checkout.is_clean:
        listed = ", ".join(checkout.changed)
        report.notes.append(f"not saved for a deploy: these files differ from the commit's tree: {listed}")
        return
    with StateBucket.of(url, environ) as bucket:
        place = reviews.Place(project.name, report.stack, report.tree)
        is_new = reviews.save(bucket, place, report.as_json(), report.planned, plan.read_bytes() if plan else None)
        name = place.name(report.state_digest)
        report.notes.append(f"{'saved' if is_new else 'saved already'} for the deploy: {bucket.url}/{name}")
