"""Preview of a stack for a review: what would change, what it costs, and whether the policies and the price allow it.

Needs read rights only, and in a bucket of states the right to create objects below `plans/`. The verdict is `allowed`
only if the program succeeded, every policy pack evaluated all of the stack, none refuses, and every accelerator has a
price (bezel.engine.changes.preview). Leaves out the comparison with an earlier review (`deploy`).
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bezel.engine.changes.planned import digest
from bezel.engine.changes.preview import packs_of, preview_on
from bezel.engine.changes.report import ChangeReport
from bezel.engine.outcomes import RefusedError
from bezel.engine.project.checkout import Checkout
from bezel.engine.project.project import Project
from bezel.engine.run.stack import stack_engine
from bezel.engine.state.bucket import BACKEND, StateBucket
from bezel.engine.state.exported import state_digest
from bezel.gitops.judge.base import BaseJudge
from bezel.gitops.judge.document import add
from bezel.gitops.judge.record import is_first_deploy
from bezel.gitops.review import reviews
from bezel_base.errors import UserError


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
    if judge.changes:
        is_first = is_first_deploy(environ.get(BACKEND, ""), environ, project.name, stack)
        judge = replace(judge, is_first_deploy=is_first)
    try:
        judge.check(stack)
    except RefusedError as error:
        report = ChangeReport("preview", stack, checkout.tree, checkout.commit, project=project.name)
        report.changes_digest = digest(())
        report.verdict, report.problems = "refused", list(map(str, error.problems))
        add(report, judge.as_json())
        return report
    with (
        judge.folder() as place,
        tempfile.TemporaryDirectory(prefix="bezel-plan-") as folder,
        stack_engine(project, stack, environ) as prepared,
    ):
        made = preview_on(prepared, checkout, packs_of(project, packs, place), Path(folder))
        report = made.report
        if part := judge.as_json():
            add(report, part)
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
        place = reviews.ReviewPlace(project.name, report.stack, report.tree)
        is_new = reviews.save(bucket, place, report.as_json(), report.planned, plan.read_bytes() if plan else None)
        name = place.name(report.state_digest)
        report.notes.append(f"{'saved' if is_new else 'saved already'} for the deploy: {bucket.url}/{name}")
