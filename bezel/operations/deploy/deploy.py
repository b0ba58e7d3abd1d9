"""Deploy of a stack in two steps: a preview judged by the policies and the price, then exactly that.

The second step previews again under the stack's lock, and continues only if nothing has changed since the plan and the
changes are the planned ones; the engine then keeps to the plan of this very preview. Leaves out what was reviewed
(bezel.gitops.review) and the lock (`changes.stack_lock`).
"""

import contextlib
import difflib
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bezel.engine.changes.outcome import finish
from bezel.engine.changes.preview import Previewed, packs_of, preview_on
from bezel.engine.changes.report import ChangeReport, smoke_line
from bezel.engine.locks.held import HeldLock
from bezel.engine.project.checkout import Checkout
from bezel.engine.run.stack import StackEngine, stack_engine
from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import Stack, Wait
from bezel.operations.changes.basis import ChangedError, basis_of, check, check_place
from bezel.operations.changes.losses import losses
from bezel.operations.changes.plan import Outcome, Plan, Price, plain, plain_all
from bezel.operations.changes.stack_lock import CancelledError, EngineLockedError, check_engine, under_lock, wait_of
from bezel.operations.changes.stack_runs import is_pending, planned_changes, quiet, run_changes, verdict_of
from bezel.operations.context import Context
from bezel.operations.stack_edits.file_writes import alone_in, write_file
from bezel.planner.base.money import Amount, Priced
from bezel.resource_cost.price_line import price_line
from bezel.resource_cost.stack_cost import StackCost
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

_PREFIX = "bezel-plan-"
_HERE = Checkout("", "")  # of no commit: an operator deploys the files as they are

Edit = Callable[[str], str]
"""The text of a stack's file -> the text that is deployed, and written into the file."""


class DeployArguments(Arguments):
    """Which stack, and how long to wait."""

    stack: Stack
    wait: Wait = "15m"


def plan_deploy(context: Context, arguments: DeployArguments) -> Plan:
    """Plan a deploy of a stack's file and program as they are.

    Raises:
        UserError: The stack has no file, the preview failed, or an earlier run was interrupted.
    """
    wait_of(arguments.wait)
    return plan_stack(context, "deploy", arguments.stack, arguments)


def apply_deploy(context: Context, plan: Plan) -> Outcome:
    """Deploy what was planned.

    Raises:
        ChangedError: Something has changed since; nothing was done.
        LockedError: Another run works on the stack.
        UserError: The backend cannot be used.
    """
    arguments = DeployArguments.model_validate(plan.arguments)
    return apply_stack(context, plan, arguments.stack, arguments.wait)


def plan_stack(context: Context, operation: str, stack: str, arguments: Arguments, edit: Edit | None = None) -> Plan:
    """Plan a run of the engine on a stack's file and program as they are, or with another text of the file.

    Raises:
        UserError: The stack has no file, the preview failed, or an earlier run was interrupted.
    """
    file = context.project.stack_file(stack)
    before = _text(file)
    after = before if edit is None else edit(before)
    with (
        stack_engine(context.project, stack, context.environ, text=after) as prepared,
        TemporaryDirectory(prefix=_PREFIX) as folder,
    ):
        refuse_pending(prepared, stack)
        made = _preview(context, prepared, Path(folder))
        report = made.report
        if report.verdict == "failed":
            raise UserError(*plain_all(report.problems), title=f"The preview of {stack} failed")
        changes = planned_changes(report.changes)
        again = [change for change in changes if change.op in ("delete", "replace")]
        outputs = f"outputs that change: {', '.join(report.outputs)}"
        return Plan(
            operation=operation,
            target=stack,
            summary=_summary(report),
            arguments=arguments.model_dump(mode="json"),
            changes=changes,
            file_change=_difference(file.name, before, after),
            price=price_line(report.before, report.after),
            price_before=price_of(report.before),
            price_after=price_of(report.after),
            destroyed=tuple(f"{change.name} ({change.type})" for change in again),
            lost=losses(again),
            warnings=plain_all([*report.rollbacks, *_advice(report), *report.quota_warnings]),
            notes=plain_all([*_quota_notes(report), *([outputs] if report.outputs else [])]),
            refusals=_refusals(report),
            confirm_name=stack if again else None,
            basis={**basis_of(context, stack, prepared.state), "changes": report.changes_digest},
            is_empty=not (report.changes or report.outputs or after != before),
        )


def apply_stack(context: Context, plan: Plan, stack: str, wait: str, edit: Edit | None = None) -> Outcome:
    """Carry out a plan of `plan_stack`, with the same edit.

    The file is written before the cloud is changed: what a kill in between leaves is a file that the next plan shows as
    not deployed, never a cloud that the next deploy would change back.

    Raises:
        ChangedError: Something has changed since; nothing was done.
        LockedError: Another run works on the stack.
        CancelledError: The caller gave up before anything was done.
        UserError: The backend cannot be used.
    """

    def step(lock: HeldLock | None) -> Outcome:
        file = context.project.stack_file(stack)
        before = _text(file)
        after = before if edit is None else edit(before)
        with (
            stack_engine(context.project, stack, context.environ, create=True, text=after) as prepared,
            TemporaryDirectory(prefix=_PREFIX) as folder,
        ):
            refuse_pending(prepared, stack)
            check(plan, {**plan.basis, **basis_of(context, stack, prepared.state)})
            if plan.is_empty:
                return Outcome(operation=plan.operation, target=stack, verdict="unchanged")
            check_engine(context, stack)  # the engine refuses too, but after a preview, and after each wait
            made = _preview(context, prepared, Path(folder))
            if made.report.changes_digest != plan.basis["changes"] or made.report.verdict != "allowed":
                raise _differs(plan, made.report)
            with _write_or_restore(file, before, after):
                outcome = _up(context, plan, prepared, made, lock)
            if after == before:
                return outcome
            kept = f"{file.name} has the new values"
            if outcome.verdict != "done":
                kept += f": once it is mended, `bezel deploy {shell_word(stack)}` deploys them"
            return outcome.model_copy(update={"details": (*outcome.details, kept)})

    check_place(context, plan)
    return under_lock(context, stack, wait_of(wait), step)


def refuse_pending(prepared: StackEngine, stack: str) -> None:
    """Refuse to plan on the state of a run that ended in the middle of an operation.

    Raises:
        UserError: It is one.
    """
    if is_pending(prepared):
        consequence = "an earlier run was ended in the middle of an operation, so its outcome is unknown."
        raise UserError(
            Problem(f"stack {stack}", None, consequence, f"reconcile it: `bezel recover {shell_word(stack)}`.")
        )


def _quota_notes(report: ChangeReport) -> list[str]:
    """Use, limit and need of each quota that the stack counts in: what is too full is a warning, and not here."""
    return [f"use of quotas: {line}" for line in report.quota if line not in report.quota_warnings]


def price_of(cost: StackCost | None) -> Price | None:
    """A price as a result; None where it was not determined."""

    def usd(amount: Amount) -> object:
        return amount.usd if isinstance(amount, Priced) else None

    if cost is None:
        return None
    amounts = {
        "usd_per_hour": usd(cost.hourly),
        "usd_per_month": usd(cost.monthly),
        "usd_per_hour_idle": usd(cost.idle_hourly),
    }
    return Price.model_validate({**amounts, "missing": cost.missing})


def _text(file: Path) -> str:
    """The file's text with its line ends."""
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(Problem(file.name, None, f"it is not UTF-8 text: {error}.", "save it as UTF-8.")) from None


def _difference(name: str, before: str, after: str) -> str | None:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="", n=1)
    return "\n".join(lines) or None


@contextlib.contextmanager
def _write_or_restore(file: Path, before: str, after: str) -> Iterator[None]:
    """Write the file; put it back where the engine did not begin.

    Raises:
        ChangedError: An edit has changed it since it was read; nothing was written.
    """
    if after == before:
        yield
        return
    with alone_in(file.parent):
        write_file(file, before, after)
    try:
        yield
    except (EngineLockedError, CancelledError):
        with alone_in(file.parent):
            write_file(file, after, before)
        raise


def _preview(context: Context, prepared: StackEngine, folder: Path) -> Previewed:
    context.show(f"previewing {prepared.engine.stack}")
    engine = StackEngine(quiet(context, prepared.engine), prepared.state)
    made = preview_on(engine, _HERE, packs_of(context.project, ()), folder, "deployment")
    if context.cancelled.is_set():
        raise CancelledError("cancelled: nothing was changed")
    return made


def _up(context: Context, plan: Plan, prepared: StackEngine, made: Previewed, lock: HeldLock | None) -> Outcome:
    report = made.report
    packs = packs_of(context.project, ())
    run, open_changes = run_changes(context, prepared.engine, "up", lock, packs=packs, plan=made.plan)
    finish(report, run)
    smoke = report.more.get("smoke")
    verdict = verdict_of(run, open_changes)
    if verdict == "done" and report.verdict != "deployed":
        verdict = "failed"
    return Outcome(
        operation=plan.operation,
        target=plan.target,
        verdict=verdict,
        changes=planned_changes(report.changes),
        price=plan.price,
        url=report.url,
        details=plain_all([f"smoke check: {smoke_line(smoke)}"] if smoke else []),
        problems=plain_all([*report.problems, *open_changes]),
    )


def _summary(report: ChangeReport) -> str:
    counted = ((op, len(report.cloud_changes(op))) for op in ("create", "update", "replace", "delete"))
    counts = ", ".join(f"{count} to {op}" for op, count in counted if count)
    return counts or ("only outputs of the stack change" if report.outputs or report.changes else "no changes")


def _advice(report: ChangeReport) -> list[str]:
    return [f"{item.policy} ({item.resource}): {item.message}" for item in report.verdicts() if not item.refuses]


def _refusals(report: ChangeReport) -> tuple[str, ...]:
    if report.verdict == "allowed":
        return ()
    refusing = [f"{item.policy} ({item.resource}): {item.message}" for item in report.verdicts() if item.refuses]
    return plain_all([*refusing, *report.problems])


def _differs(plan: Plan, report: ChangeReport) -> ChangedError:
    consequence = "a preview under the stack's lock plans other changes than those that were confirmed"
    reasons = plain("; ".join(report.problems)) if report.verdict != "allowed" else "the cloud has changed since"
    text = f"{consequence}: {reasons}; nothing was changed."
    return ChangedError(Problem(f"{plan.operation} {plan.target}", None, text, "plan again, and look at it."))
