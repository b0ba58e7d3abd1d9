"""New row of a project's catalogue: a model's files are read, and the row with its checkpoint and notes is returned.

Nothing is written. Leaves the file, and rows that a project has already, to the callers.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bezel.model_sources.cached import describe
from bezel.model_sources.places import CLOUD_STORAGE, is_folder, repository_of
from bezel.model_sources.rows import free_id, notes_of, row_of
from bezel_base.errors import UserError
from bezel_catalog.models import catalogue_models
from bezel_catalog.project_models.reading import FILE
from bezel_catalog.project_models.row import ModelRow, model_of
from bezel_catalog.project_models.text import with_row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bezel_catalog import Model


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row that no file has yet.

    Attributes:
        row: The row.
        model: The checkpoint that it describes.
        notes: What a user is to know of it.
    """

    row: ModelRow
    model: Model
    notes: tuple[str, ...]

    def catalogue_text(self) -> str:
        """The text of a catalogue with this row alone."""
        return with_row("", self.row)


def read_new_row(
    source: str,
    *,
    revision: str = "",
    environ: Mapping[str, str],
    token: Callable[[], str],
    show: Callable[[str], None],
) -> NewRow:
    """Read the files of a model, and return its row for a project that has none.

    Args:
        source: `OWNER/NAME[@REVISION]` of a hub, a folder, or `gs://BUCKET/FOLDER`.
        revision: Branch, tag or commit of a repository; "" for that of the name, or `main`.
        environ: The environment; HF_ENDPOINT in it replaces the public hub.
        token: Returns the hub's token when it first requires one; "" for none.
        show: Called with what is being read.

    Raises:
        UserError: There is no such model, it may not be read, or no plan can be made for it.
    """
    description = describe(source, revision, environ=environ, token=token, show=show)
    row = row_of(description, free_id(description, {}), datetime.now(UTC).date())
    return NewRow(row, model_of(row, f"{FILE}: {row.id}"), tuple(notes_of(description, row)))


def is_place(name: str) -> bool:
    """Whether a name means files: `OWNER/NAME`, a folder, or `gs://BUCKET/FOLDER`."""
    return "/" in name or is_folder(name)


def catalogued_id(name: str) -> str | None:
    """The id of the catalogue's checkpoint that is published under this name of a hub, None without one."""
    if name.startswith(CLOUD_STORAGE) or is_folder(name):
        return None
    try:
        hub_id = repository_of(name).id.lower()
    except UserError:
        return None
    return next((each.id for each in catalogue_models().values() if (each.hub_id or "").lower() == hub_id), None)
