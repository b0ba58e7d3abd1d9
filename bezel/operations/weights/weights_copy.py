"""Copy of a stack's model into its buckets in two steps: what would be written, then the verified, resumable copy.

Owns which model goes where, the plan, progress and the end of a cancelled copy: files that are complete stay, an upload
under way is continued by the next copy. Leaves sources to `sources` and the bytes to `bezel.weights`.
"""

import io
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import product
from typing import Annotated, TextIO

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import Stack
from bezel.operations.changes.basis import check, check_place, place_of
from bezel.operations.changes.plan import Outcome, Plan, PlannedChange, Verdict, plain_all
from bezel.operations.context import Context
from bezel.operations.plan.plan import plan_of
from bezel.operations.touches import BeyondStackError
from bezel.operations.weights.sources import CLOUD_STORAGE, HUB, Opened, open_source
from bezel.operations.weights.stack_buckets import stack_buckets
from bezel.planner import AnyPlan
from bezel.weights.bucket import Bucket, Stored
from bezel.weights.copy import Item, copy_model
from bezel.weights.copy import Outcome as Copied
from bezel.weights.errors import StoppedError
from bezel.weights.layout import FolderKind, is_wanted, missing_files
from bezel.weights.progress import Progress, size
from bezel.weights.retry import Watch
from bezel_base.errors import Problem, UserError

NAME = "weights_copy"
_TYPE = "storage.googleapis.com/Object"
_PLAN_SECONDS = 120.0
_UNPRICED = "storage, and the network between locations, are not priced here"


class CopyArguments(Arguments):
    """Which model, and from where."""

    stack: Stack = Field(max_length=100)
    origin: Annotated[str | None, Reach.INSIDE, Option("SOURCE", flag="--from")] = Field(
        None,
        max_length=500,
        description="hf:OWNER/NAME[@REVISION], gs://BUCKET/PATH or garden:PUBLISHER/MODEL@VERSION "
        "(default: the model's own repository on the Hugging Face hub, with drafts and adapters)",
    )
    # Enough for the largest model of the catalogue (58 GiB) at 5 MB/s.
    deadline: Annotated[float, Reach.INSIDE, Option("SECONDS")] = Field(
        21_600.0,
        gt=0,
        le=604_800,
        description="time limit in seconds; copied files stay (default: 6 hours)",
    )


def check_scope(context: Context, arguments: CopyArguments) -> None:
    """Check that a copy reads no bucket but the stack's own; the hub and Model Garden belong to no stack.

    Raises:
        BeyondStackError: It does.
        UserError: The stack cannot be planned.
    """
    origin = (arguments.origin or "").strip()
    if not origin.startswith(CLOUD_STORAGE):
        return
    named_bucket = origin.removeprefix(CLOUD_STORAGE).strip("/").partition("/")[0]
    if named_bucket not in stack_buckets(plan_of(context, arguments.stack)[0]):
        repair = "copy from the hub (hf:OWNER/NAME) or from Model Garden (garden:PUBLISHER/MODEL@VERSION)."
        raise BeyondStackError("--from", arguments.origin, arguments.stack, repair)


def plan_copy(context: Context, arguments: CopyArguments) -> Plan:
    """Plan a copy.

    Raises:
        UserError: The stack reads no bucket, or the source cannot be read.
        RestError: A request failed.
    """
    plan, sources = _sources(context, arguments)
    changes: list[PlannedChange] = []
    replaced: list[Item] = []
    unread: list[Item] = []
    summary: list[str] = []
    refusals: list[str] = []
    basis, is_empty = _basis(context, plan), True
    watch, quiet = Watch(_PLAN_SECONDS, cancelled=context.cancelled), Progress(io.StringIO())
    for name in stack_buckets(plan):
        with closing(Bucket(name, watch)) as bucket:
            for folder, origin in sources.items():
                context.show(f"lists {origin}")
                address = f"gs://{bucket.name}/{folder}"
                kind = _kind(plan, folder)
                with open_source(context, plan, origin, bucket, watch, quiet) as source:
                    items = [item for item in source.model.items() if is_wanted(item.path, kind)]
                    present = {stored.name: stored for stored in bucket.objects(f"{folder}/")}
                    comparison = _Compared.of(
                        items, {item.path: present.get(f"{folder}/{item.path}") for item in items}
                    )
                basis[f"source of {folder}"] = source.content
                is_empty = is_empty and not (comparison.missing or comparison.replaced or comparison.unread)
                replaced += comparison.replaced
                unread += comparison.unread
                summary.append(f"{source.shown} -> {address}: {comparison.text()}")
                if problems := missing_files({item.path: item.size for item in items}, kind):
                    what = "adapter" if kind == "adapter" else "model"
                    refusals.append(
                        f"{source.shown} is not a complete {what} ({'; '.join(problems)}): vLLM could not load it"
                    )
                if items:
                    changes.append(PlannedChange(op="update" if present else "create", name=address, type=_TYPE))
    return Plan(
        operation=NAME,
        target=arguments.stack,
        summary="; ".join(summary),
        arguments=arguments.model_dump(mode="json"),
        changes=() if is_empty else tuple(changes),
        destroyed=plain_all(f"{item.path}, another content of which is there" for item in replaced),
        warnings=() if is_empty else (_UNPRICED, *_warnings(unread)),
        refusals=plain_all(dict.fromkeys(refusals)),
        confirm_name=arguments.stack if replaced else None,
        basis=basis,
        is_empty=is_empty and not refusals,
    )


def apply_copy(context: Context, plan: Plan) -> Outcome:
    """Copy what was planned.

    Raises:
        ChangedError: The source or the stack's model has changed since; nothing was done.
        UserError: The source cannot be read.
        RestError: A request failed before anything was copied.
    """
    arguments = CopyArguments.model_validate(plan.arguments)
    check_place(context, plan)
    made, sources = _sources(context, arguments)
    watch, progress = Watch(arguments.deadline, cancelled=context.cancelled), Progress(_out(context))
    done: list[str] = []
    problems: list[str] = []
    names = stack_buckets(made)
    with ExitStack() as opened:
        first, *further = (opened.enter_context(closing(Bucket(name, watch))) for name in names)
        opened_sources = {
            folder: opened.enter_context(open_source(context, made, origin, first, watch, progress))
            for folder, origin in sources.items()
        }
        present = {f"source of {folder}": source.content for folder, source in opened_sources.items()}
        check(plan, {**_basis(context, made), **present})
        if plan.is_empty:
            return Outcome(operation=NAME, target=plan.target, verdict="unchanged", details=(plan.summary,))

        def copy(source: Opened, bucket: Bucket, folder: str) -> bool:
            """Copy a model; whether that is done."""
            context.show(f"{source.shown} -> gs://{bucket.name}/{folder}")
            kind = _kind(made, folder)
            outcome = copy_model(source.model, bucket, folder, watch=watch, progress=progress, kind=kind)
            done.append(_summary(f"gs://{bucket.name}/{folder}" if further else folder, outcome))
            if outcome.failures:
                problems.extend([*outcome.failures, "the same copy continues: copied files stay"])
            return not outcome.failures

        try:
            is_done = all(copy(source, first, folder) for folder, source in opened_sources.items())
            for bucket, folder in product(further if is_done else (), sources):
                # Cloud Storage copies from the first bucket, whose objects have the hashes of their content.
                with open_source(context, made, f"gs://{first.name}/{folder}", bucket, watch, progress) as copied:
                    if not copy(copied, bucket, folder):
                        break
        except StoppedError:
            return _outcome(plan, "cancelled", done, ["stopped; the same copy continues"])
    cancelled = bool(problems) and context.cancelled.is_set()
    return _outcome(plan, "cancelled" if cancelled else "failed" if problems else "done", done, problems)


def _outcome(plan: Plan, verdict: Verdict, done: list[str], problems: list[str]) -> Outcome:
    return Outcome(
        operation=NAME,
        target=plan.target,
        verdict=verdict,
        changes=plan.changes if verdict == "done" else (),
        details=plain_all(done),
        problems=plain_all(problems),
    )


def _sources(context: Context, arguments: CopyArguments) -> tuple[AnyPlan, dict[str, str]]:
    """The stack's plan, and folder in its bucket -> source.

    Raises:
        UserError: The stack cannot be planned or reads no bucket, or its model is not published.
    """
    plan, _ = plan_of(context, arguments.stack)
    if plan.weights.bucket is None:
        consequence = "with this setting the stack reads nothing from a bucket."
        repair = "choose another one, e.g. fuse-prefetch, or copy nothing."
        raise UserError(Problem("bezel:weights.loading", plan.weights.loading, consequence, repair))
    repair = "name your own copy: --from gs://BUCKET/PATH or --from hf:OWNER/NAME."
    if arguments.origin is not None:
        if not arguments.origin.strip():
            raise UserError(Problem("--from", arguments.origin, "it names no model.", repair))
        return plan, {plan.weights.path: arguments.origin.strip()}
    loaded = {folder: source for folder, (_, source) in plan.bucket_models.items()}
    models = {**loaded, **plan.weights.drafts, **plan.weights.adapter_sources}
    if not all(models.values()):
        raise UserError(Problem("bezel:model", plan.model, "this model is not published.", repair))
    return plan, {folder: f"{HUB}{source}" for folder, source in models.items()}


def _kind(plan: AnyPlan, folder: str) -> FolderKind:
    if folder in plan.weights.drafts:
        return "draft"
    return "adapter" if folder in plan.weights.adapter_sources else "model"


def _basis(context: Context, plan: AnyPlan) -> dict[str, str]:
    drafts = ", ".join(sorted((*plan.weights.drafts, *plan.weights.adapter_sources)))
    buckets = " ".join(f"gs://{bucket}/{plan.weights.path}" for bucket in stack_buckets(plan))
    return {**place_of(context), "weights": f"{buckets} {drafts}".rstrip()}


@dataclass(frozen=True)
class _Compared:
    """Files of a source against those of the bucket: missing ones, replaced ones, equal ones.

    `unread` have the size of the object that is there, which notes no hash: the copy reads it.
    """

    missing: list[Item]
    replaced: list[Item]
    unread: list[Item]
    equal: list[Item]

    @classmethod
    def of(cls, items: list[Item], stored_by_path: Mapping[str, Stored | None]) -> "_Compared":
        comparison = cls([], [], [], [])
        for item in items:
            stored = stored_by_path[item.path]
            if stored is None:
                comparison.missing.append(item)
            elif stored.size != item.size:
                comparison.replaced.append(item)
            elif not stored.metadata and not item.is_cheap:
                comparison.unread.append(item)
            else:
                (comparison.equal if item.same(stored) else comparison.replaced).append(item)
        return comparison

    def text(self) -> str:
        """The counts."""
        parts = {"to copy": self.missing, "to replace": self.replaced, "to compare": self.unread, "there": self.equal}
        return ", ".join(f"{_files_text(items)} {what}" for what, items in parts.items() if items) or "no files"


def _warnings(unread: list[Item]) -> tuple[str, ...]:
    if not unread:
        return ()
    return (f"{_files_text(unread)} of the same size note no hash: each is read, and replaced if its content differs",)


def _files_text(items: list[Item]) -> str:
    return f"{len(items)} files ({size(sum(item.size for item in items))})"


def _summary(folder: str, outcome: Copied) -> str:
    parts = [f"{outcome.copied} files copied ({size(outcome.copied_bytes)})", f"{outcome.unchanged} unchanged"]
    if outcome.left_out:
        parts.append(f"{outcome.left_out} left out, which vLLM does not read")
    return f"{folder}: {', '.join(parts)}"


def _out(context: Context) -> TextIO:
    """Where progress is written: a bar at a terminal, else lines of the context's progress."""
    return sys.stdout if context.pieces is not None and sys.stdout.isatty() else _Lines(context.show)


class _Lines(io.StringIO):
    """A stream whose lines are lines of progress."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__()
        self._show, self._rest, self._lock = show, "", threading.Lock()

    def write(self, text: str) -> int:
        """Show the lines that are complete."""
        with self._lock:
            *lines, self._rest = f"{self._rest}{text}".split("\n")
            for line in lines:
                if line.strip():
                    self._show(line.strip())
        return len(text)
