"""Checkpoints and their architectures, from which memory and speed are computed. Data: models.toml."""

from __future__ import annotations

import functools
import json
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_base.errors import Problem
from bezel_catalog.architectures.rows import read_row
from bezel_catalog.loader import DataFileError, find, make, read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_catalog.architectures.architecture import Architecture


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """What a model's own files say, as JSON texts, and which files it brings.

    Attributes:
        config: of config.json.
        generation: of generation_config.json; `{}` without one.
        processor: of the processor's configuration; `{}` without one.
        tokenizer: whether it brings one.
        chat_template: whether it brings one.
        pooling_module: whether modules.json of Sentence Transformers names a module that pools.
        tool_call_parser, reasoning_parser: vLLM's parsers that read what it writes; "" where none was chosen.
    """

    config: str
    generation: str
    processor: str
    tokenizer: bool
    chat_template: bool
    pooling_module: bool = False
    tool_call_parser: str = ""
    reasoning_parser: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """One checkpoint. `weight_bytes` are resident on the accelerator once the checkpoint is loaded.

    `hub_id` is None for an unpublished form: only a stack that names its own folder can serve it. `derived` is true
    where `weight_bytes` is arithmetic and not a measurement. `assistant` is the hub id of the draft model for
    multi-token prediction and `assistant_bytes` its size. `not_on` holds pairs of a machine ("tpu" or an accelerator's
    id) and the reason why the checkpoint does not run there.

    Of a project's own model, `files` is what its files say, `commit` that of its repository, `revision` the branch, tag
    or commit that it was asked for, and `bucket_folder` the folder of a bucket that it was read from.
    """

    id: str
    architecture: Architecture
    encoding: str
    weight_bytes: int
    as_of: str
    source: str
    hub_id: str | None = None
    assistant: str | None = None
    assistant_bytes: int = 0
    derived: bool = False
    not_on: tuple[tuple[str, str], ...] = ()
    commit: str = ""
    revision: str = ""
    bucket_folder: str = ""
    files: ModelFiles | None = None

    @property
    def folder(self) -> str | None:
        """The folder of the checkpoint in a bucket, unless a stack names another: the hub id without its owner."""
        return self.hub_id.rsplit("/", 1)[-1] if self.hub_id else self.bucket_folder or None

    @property
    def is_gemma4(self) -> bool:
        """Whether it is of the family for which processors, parsers and attention backends are recorded."""
        return self.architecture.model_type.startswith("gemma4")

    @property
    def config(self) -> dict[str, Any]:
        """Content of its config.json; {} for a model of the catalogue."""
        content: dict[str, Any] = json.loads(self.files.config) if self.files else {}
        return content

    @property
    def repository(self) -> str:
        """Its name on the hub, with the commit where it is pinned to one; "" for an unpublished form."""
        return f"{self.hub_id}@{self.commit}" if self.hub_id and self.commit else self.hub_id or ""

    def is_named(self, name: str) -> bool:
        """Whether `OWNER/NAME` or `OWNER/NAME@REVISION` means this checkpoint of a project."""
        hub_id, _, revision = name.partition("@")
        return bool(self.files) and hub_id == self.hub_id and revision in ("", self.revision, self.commit)

    def refused_on(self, machine: str) -> str | None:
        """Return why the checkpoint does not run on a machine ("tpu" or an accelerator's id); None if none is known."""
        return dict(self.not_on).get(machine)


@functools.cache
def _read() -> tuple[dict[str, Model], tuple[tuple[str, str], ...]]:
    data = read_toml("models.toml")
    shapes = {
        name: read_row(f"models.toml: architecture {name}", name, row) for name, row in data["architecture"].items()
    }
    records = {}
    for name, row in data["model"].items():
        where, shape = f"models.toml: {name}", row.pop("architecture", None)
        if shape not in shapes:
            repair = f"choose one of {', '.join(shapes)}."
            raise DataFileError(Problem(f"{where}: architecture", shape, "no architecture has this name.", repair))
        not_on = tuple(row.pop("not_on", {}).items())
        records[name] = make(Model, where, row, id=name, architecture=shapes[shape], not_on=not_on)
    return records, tuple((row["pattern"], row["reason"]) for row in data["unservable"])


_project_models: ContextVar[Mapping[str, Model]] = ContextVar("project_models", default={})  # noqa: B039 - never written


def catalogue_models() -> dict[str, Model]:
    """Return every checkpoint of the catalogue's own by id."""
    return _read()[0]


@contextmanager
def using_models(added: Mapping[str, Model] | None) -> Iterator[None]:
    """While the block runs, look-ups know a project's models beside the catalogue's; None changes nothing."""
    if added is None:
        yield
        return
    token = _project_models.set(added)
    try:
        yield
    finally:
        _project_models.reset(token)


def models() -> dict[str, Model]:
    """Return every checkpoint by id: those of the catalogue, then the project's (`using_models`)."""
    added = _project_models.get()
    return {**catalogue_models(), **added} if added else catalogue_models()


def model(name: str) -> Model:
    """Return the checkpoint of that id; one of the project also by `OWNER/NAME`, or `OWNER/NAME@REVISION`.

    Raises:
        NotInCatalogueError: no checkpoint has the name.
    """
    match = next((each for each in _project_models.get().values() if each.is_named(name)), None)
    return match or find("model", name, models())


def ids_by_hub_id() -> dict[str, str]:
    """Ids of the checkpoints by the name under which each is published."""
    return {checkpoint.hub_id: checkpoint.id for checkpoint in models().values() if checkpoint.hub_id}


def unservable_form(name: str) -> str | None:
    """Return why vLLM does not serve a published form of the weights, recognised by its name; None otherwise."""
    return next((reason for pattern, reason in _read()[1] if pattern in name.lower()), None)
