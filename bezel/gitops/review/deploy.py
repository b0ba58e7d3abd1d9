"""Deploy of a stack on the merged tree: exactly what was reviewed, under the stack's lock.

Previews again with the merged code, compares with the review, and executes the plan of this very preview: a plan from
the bucket may have been made by a pull request's code. What a killed run left is reconciled first. Leaves out the
lock's rules (bezel.engine.locks), what counts as reviewed (`approval`), and traffic: gated roll-outs stay gated.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bezel.engine.changes.locked_run import run_locked
from bezel.engine.changes.outcome import finish, smoke_of, url_of
from bezel.engine.changes.planned import digest
from bezel.engine.changes.preview import Previewed, preview_on
from bezel.engine.changes.report import ChangeReport
from bezel.engine.locks.held import HeldLock
from bezel.engine.locks.taker import hold, surroundings
from bezel.engine.outcomes import RefusedError
from bezel.engine.project.checkout import Checkout
from bezel.engine.project.project import Project
from bezel.engine.recover.recover import Recovered, recover
from bezel.engine.run.engine import Engine
from bezel.engine.run.stack import StackEngine, stack_engine
from bezel.engine.state.bucket import BACKEND, StateBucket
from bezel.engine.state.exported import has_pending
from bezel.gitops.judge.document import add
from bezel.gitops.judge.gate import Judgement, judge_deploy, record_allowed
from bezel.gitops.review import deploy_record, reviews
from bezel.gitops.review.approval import Decision, ReviewHistory, decide
from bezel_base.console import note
from bezel_base.errors import Problem
from bezel_base.text.shell import shell_word


@dataclass(frozen=True)
class Deploy:
    """A deploy under the stack's lock.

    Attributes:
        project: The project.
        stack: The stack's name.
        checkout: The checkout of the merged tree.
        packs: Policy packs, for the preview and for the deploy.
        bucket: The bucket of the states.
        judged: Whether what judges the deploy may judge it: it may.
        approved: The digest of changes that a person has typed, "" if none.
    """

    project: Project
    stack: str
    checkout: Checkout
    packs: Sequence[Path]
    bucket: StateBucket
    judged: Judgement
    approved: str = ""

    def run(self, prepared: StackEngine, lock: HeldLock) -> ChangeReport:
        """Reconcile, preview, compare, deploy; the report says how far it came.

        Raises:
            LockedError: The lock was lost.
            UserError: A killed run left resources that cannot be reconciled, or the bucket cannot be used.
        """
        # What a killed engine left pending.
        recovered = recover(prepared.engine, mark=self._mark) if has_pending(prepared.state) else Recovered()
        if recovered.checked:
            prepared = replace(prepared, state=prepared.engine.export())
        with tempfile.TemporaryDirectory(prefix="bezel-plan-") as folder:
            made = preview_on(prepared, self.checkout, self.packs, Path(folder), "deployment")
            report = made.report
            report.more["recovered"] = list(recovered.adopted)
            if self.judged.is_worth_saying:
                add(report, self.judged.as_json())
            if report.verdict != "allowed":
                return report
            if not (report.changes or report.outputs):
                report.verdict = "unchanged"
                report.more["smoke"] = smoke_of(made.outputs)
                record_allowed(self.bucket, self.project.name, self.stack, self.judged)
                report.url = url_of(made.outputs)
                self._end(report)
                return report
            # Outputs alone are no change of the cloud, so there is nothing to review in them.
            decision = self._decide(report) if report.changes else Decision(True, "only outputs of the stack change")
            report.more["review"] = decision.reason
            report.more["difference"] = decision.difference
            if not decision.allowed or made.plan is None:
                refuse(report, decision)
                return report
            note(f"{self.stack}: {decision.reason}: {report.changes_digest}")
            self._up(prepared.engine, made, lock)
            return report

    def _decide(self, report: ChangeReport) -> Decision:
        place = reviews.ReviewPlace(self.project.name, self.stack, self.checkout.tree)
        review = reviews.find(self.bucket, place, report.state_digest)
        others = () if review else reviews.others(self.bucket, place)
        begun = deploy_record.begun_changes(self.bucket, self.project.name, self.stack, self.checkout.tree)
        return decide(report.planned, ReviewHistory(review, others, begun), self.approved)

    def _up(self, engine: Engine, made: Previewed, lock: HeldLock) -> None:
        report = made.report

        def begin() -> None:
            names = (self.project.name, self.stack, self.checkout.tree)
            record_allowed(self.bucket, self.project.name, self.stack, self.judged)
            deploy_record.write(self.bucket, *names, report.planned, ended=False)

        done = run_locked(engine, "up", lock, packs=self.packs, plan=made.plan, mark=self._mark, begin=begin)
        finish(report, done.run)
        if done.recovered is not None:
            report.more["recovered"] = list(done.recovered.adopted)
        report.problems += [done.problem] if done.problem else []
        if report.verdict == "deployed":
            self._end(report)

    def _end(self, report: ChangeReport) -> None:
        """Record that the tree is deployed: what may be left of an earlier attempt is not continued any more."""
        names = (self.project.name, self.stack, self.checkout.tree)
        if report.changes or deploy_record.begun_changes(self.bucket, *names) is not None:
            deploy_record.write(self.bucket, *names, report.planned, ended=True)

    @property
    def _mark(self) -> str:
        """Marks the processes of this stack's deploys: under its lock, another one with it is of an ended run."""
        # With the address: two embedded clouds of one machine may have buckets of one name.
        return f"{self.bucket.base}:{self.bucket.url}:{self.project.name}/{self.stack}"


def deploy(
    project: Project,
    stack: str,
    checkout: Checkout,
    packs: Sequence[Path],
    environ: Mapping[str, str],
    *,
    approved: str = "",
    approved_judge: str = "",
    wait_seconds: float = 0.0,
) -> ChangeReport:
    """Deploy a stack under its lock.

    Args:
        project: The project.
        stack: The stack's name.
        checkout: The checkout of the merged tree.
        packs: Policy packs.
        environ: The variables of this process.
        approved: The digest of changes that a person has typed, "" if none.
        approved_judge: The digest of a change of what judges, likewise.
        wait_seconds: Time limit of the wait for another run on the stack.

    Raises:
        RefusedError: The checkout has other files than its commit's tree.
        LockedError: Another run works on the stack.
        UserError: The stack has no file, the backend is no bucket or cannot be used, or a killed run left resources
            that cannot be reconciled.
    """
    if not checkout.is_clean:
        consequence = f"a review is one of a tree, and these files differ from it: {', '.join(checkout.changed)}."
        repair = "commit them and have them reviewed, or run `git stash --include-untracked`."
        raise RefusedError(Problem("checkout", checkout.commit, consequence, repair))
    with (
        StateBucket.of(environ.get(BACKEND), environ) as bucket,
        hold(bucket, project.name, stack, wait_seconds, surroundings(environ)) as lock,
    ):
        # Before anything of the tree is run with the rights of a deploy.
        judged = judge_deploy(bucket, project, stack, checkout.commit, approved_judge)
        if not judged.allowed:
            return _stopped_report(project, stack, checkout, judged)
        task = Deploy(project, stack, checkout, packs, bucket, judged, approved)
        with stack_engine(project, stack, environ, create=True) as prepared:
            return task.run(prepared, lock)


def _stopped_report(project: Project, stack: str, checkout: Checkout, judged: Judgement) -> ChangeReport:
    """The report of a deploy that what judges may not judge."""
    report = ChangeReport("deployment", stack, checkout.tree, checkout.commit, project=project.name)
    report.verdict, report.changes_digest = "refused", digest(())
    add(report, judged.as_json())
    report.problems += [
        f"what judges: {judged.statement}; nothing was run or changed",
        f"repair: {judged.repair(stack)}",
    ]
    return report


def refuse(report: ChangeReport, decision: Decision) -> None:
    """Give a report the verdict of changes that were not reviewed, with the difference and the repair."""
    report.verdict = "refused"
    report.problems.append(f"{decision.reason}; nothing was changed")
    report.problems += [f"difference: {line}" for line in decision.difference]
    report.problems.append(
        f"repair: preview this tree again (`bezel ci preview {shell_word(report.stack)}`, in the pipeline: run the "
        "pull request's "
        f"preview again), or read the changes above and run `bezel ci deploy {shell_word(report.stack)} --approve "
        f"{shell_word(report.changes_digest)}`"
    )
