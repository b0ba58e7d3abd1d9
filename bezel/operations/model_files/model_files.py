"""Model files of buckets: sizes, completeness, revision, the stacks that load them; and models of Vertex AI's registry.

A folder is complete by its own lists: all numbered shards, all files that its index names, a configuration, and a
tokenizer unless it is a draft model. Reads only; leaves copying to `weights_copy`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Literal

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Reach, Word
from bezel.operations.context import Context
from bezel.operations.doctor.local_checks import plan_stacks
from bezel.operations.model_files.registry import RegistryModel, registry_of
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.operations.weights.stack_buckets import stack_buckets
from bezel.planner import AnyPlan, Plan
from bezel.rest import RestError
from bezel.weights.bucket import Bucket
from bezel.weights.layout import StoredModel, stored_models
from bezel.weights.progress import size
from bezel.weights.retry import Watch
from bezel_base.errors import Problem, UserError, one_line
from bezel_base.terminal.blocks import Block, Line, Table
from bezel_base.text.shell import shell_word

_BUCKET_SECONDS = 60.0
_GS = "gs://"
_SCOPED = "other models of the bucket, and Vertex AI's registry, are not shown: they may belong to other stacks"
_COMMIT = re.compile("[0-9a-f]{40}")
Plans = Mapping[str, tuple[AnyPlan, str | None]]


class ModelFilesArguments(Arguments):
    """Which buckets."""

    stack: Annotated[str | None, Reach.INSIDE, Word("STACK|gs://BUCKET")] = Field(
        None,
        max_length=230,
        description="stack, or bucket as gs://BUCKET (default: the buckets of all stack files)",
    )


class ModelFolder(Result):
    """A folder of a bucket that holds a model, or should."""

    address: str = Field(description="gs://BUCKET/FOLDER")
    files: int | None = Field(description="number of files; 0 where the folder is missing, null where it was not read")
    bytes: int | None = Field(description="size of its files; null where it was not read")
    is_complete: bool | None = Field(description="whether the model is whole; null where it was not read")
    problems: tuple[str, ...] = Field(description="what is missing")
    source: str | None = Field(description="where it was copied from, e.g. hf:google/gemma-4-12B-it; null if unknown")
    revision: str | None = Field(description="commit of that source; null if unknown")
    stacks: tuple[str, ...] = Field(description="stacks that load it")


class ModelFiles(Result):
    """Model files of buckets, and registered models."""

    folders: tuple[ModelFolder, ...]
    registry: tuple[RegistryModel, ...] = Field(description="models of Vertex AI's registry in the stacks' regions")
    notes: tuple[str, ...] = Field(description="what could not be read, and why")

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 where a stack's model is missing or incomplete, or unknown."""
        return 1 if any(each.stacks and not each.is_complete for each in self.folders) else 0

    def page(self) -> Iterator[Block]:
        """Tables of the folders and of the registry, then what is missing."""
        rows = [
            (
                each.address,
                "unknown" if each.files is None else each.files,
                "unknown" if each.bytes is None else size(each.bytes),
                *(_state(each), _origin(each), ", ".join(each.stacks) or "-"),
            )
            for each in self.folders
        ]
        heads = ("folder", "files", "size", "state", "source", "stacks")
        yield Table(heads, rows) if rows else Line("no model files")
        yield from (Line(f"  {each.address}: {problem}") for each in self.folders for problem in each.problems)
        if self.registry:
            entries = [
                (each.display_name, each.region, each.version, each.updated, each.artifact_uri or "-")
                for each in self.registry
            ]
            yield Line()
            yield Table(("registered model", "region", "version", "updated", "files"), entries)
        yield from (Line(f"note: {note}") for note in self.notes)


def _state(folder: ModelFolder) -> str:
    if folder.is_complete is None:
        return "unknown"
    return "complete" if folder.is_complete else "incomplete" if folder.files else "missing"


def _origin(folder: ModelFolder) -> str:
    if folder.source is None:
        return "unknown"
    revision = folder.revision or ""
    return f"{folder.source}@{revision[:12] if _COMMIT.fullmatch(revision) else revision}".rstrip("@")


@dataclass(frozen=True)
class _Owner:
    """A folder that a stack loads: its source on the hub ("" for an unpublished form), and whether it is a draft."""

    stack: str
    source: str
    is_draft: bool


def model_files(context: Context, arguments: ModelFilesArguments) -> ModelFiles:
    """Model files of a stack's bucket, of a bucket, or of the buckets of all stacks.

    Raises:
        UserError: There is neither such a stack nor can a bucket have this name, or the named bucket cannot be read.
    """
    bucket, plans = _bucket_and_plans(context, arguments.stack)
    owners: dict[str, dict[str, list[_Owner]]] = {bucket: {}} if bucket else {}
    for stack, (plan, _) in plans.items():
        for name, (folder, owner) in product(stack_buckets(plan), _folders(stack, plan)):
            if bucket in (None, name):
                owners.setdefault(name, {}).setdefault(folder, []).append(owner)
    context.show(f"lists {', '.join(f'{_GS}{name}' for name in sorted(owners)) or 'no bucket'}")
    folders: list[ModelFolder] = []
    notes: list[str] = []
    for name, bucket_owners in sorted(owners.items()):
        try:
            folders += _model_folders(name, bucket_owners)
        except RestError as error:
            if name == bucket:
                raise
            notes.append(f"{_GS}{name}: {one_line(error)}")
            folders += [_unread(name, folder, each) for folder, each in sorted(bucket_owners.items())]
    if context.scope:
        folders = [each for each in folders if each.stacks]
        notes.append(_SCOPED)
    named = plans if bucket is None and not context.scope else {}
    places = {(project, region) for plan, project in named.values() if project for region in _regions(plan)}
    registry, refused = registry_of(context, sorted(places))
    return ModelFiles(
        folders=tuple(folders),
        registry=tuple(registry),
        notes=tuple(clean_text(note, 600) for note in dict.fromkeys((*notes, *refused))),
    )


def _bucket_and_plans(context: Context, named: str | None) -> tuple[str | None, Plans]:
    """(the only bucket, None for those of the stacks; the plans that are meant or that load from it)."""
    stacks = context.project.stacks()
    if named is not None and named in stacks:
        context.project.configuration(named)
        checks, plans = plan_stacks(context, (named,))
        if not plans:
            raise UserError(*(f"{each.subject}: {each.detail}" for each in checks))
        return None, plans
    if named is None:
        return None, plan_stacks(context, stacks)[1]
    bucket = named.removeprefix(_GS).rstrip("/")
    if not _is_bucket(bucket):
        consequence = "it is neither a stack with a file in this folder nor the name of a bucket."
        repair = f"choose one of {', '.join(stacks) or '(no stacks)'}, or write gs://BUCKET."
        raise UserError(Problem("STACK", named, consequence, repair))
    return bucket, plan_stacks(context, stacks)[1]


def _is_bucket(name: str) -> bool:
    """Whether a bucket can have the name; it becomes a part of addresses."""
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789-_.")
    return 3 <= len(name) <= 222 and set(name) <= allowed and name[0].isalnum() and name[-1].isalnum()


def _regions(plan: AnyPlan) -> list[str]:
    return [each.region for each in plan.regions] if isinstance(plan, Plan) else [plan.settings.region]


def _folders(stack: str, plan: AnyPlan) -> Iterable[tuple[str, _Owner]]:
    weights = plan.weights
    if weights.bucket is not None:
        yield weights.path, _Owner(stack, weights.source, is_draft=False)
        for folder, source in weights.drafts.items():
            yield folder, _Owner(stack, source, is_draft=True)
        for folder in weights.adapters:
            yield folder, _Owner(stack, weights.adapter_sources.get(folder, ""), is_draft=False)


def _model_folders(bucket: str, owners: Mapping[str, list[_Owner]]) -> list[ModelFolder]:
    """The models of a bucket, and the folders that stacks load and that are not there."""
    drafts = {folder for folder, folder_owners in owners.items() if all(owner.is_draft for owner in folder_owners)}
    with closing(Bucket(bucket, Watch(_BUCKET_SECONDS))) as reached:
        stored = {model.folder: model for model in stored_models(reached, drafts)}
    there = [_of(bucket, model, owners.get(model.folder, ())) for model in stored.values()]
    lacking = [folder for folder in sorted(owners) if folder not in stored]
    return [*there, *(_missing(bucket, folder, owners[folder]) for folder in lacking)]


def _of(bucket: str, model: StoredModel, owners: Iterable[_Owner]) -> ModelFolder:
    source, _, revision = model.source.partition("@")
    return ModelFolder(
        address=f"{_GS}{bucket}/{model.folder}",
        files=model.files,
        bytes=model.size,
        is_complete=not model.problems,
        problems=model.problems,
        source=source or None,
        revision=revision or None,
        stacks=tuple(sorted({owner.stack for owner in owners})),
    )


def _unread(bucket: str, folder: str, owners: Iterable[_Owner]) -> ModelFolder:
    """A folder of a bucket that could not be read: it may hold everything."""
    return _missing(bucket, folder, owners).model_copy(
        update={"files": None, "bytes": None, "is_complete": None, "problems": ()}
    )


def _missing(bucket: str, folder: str, owners: Iterable[_Owner]) -> ModelFolder:
    stacks = tuple(sorted({owner.stack for owner in owners}))
    return ModelFolder(
        address=f"{_GS}{bucket}/{folder}",
        files=0,
        bytes=0,
        is_complete=False,
        problems=(f"there is no model; `bezel weights copy {shell_word(stacks[0])}` copies it",),
        source=None,
        revision=None,
        stacks=stacks,
    )
