"""Row of a model in the project's `catalog.toml` in two steps: what would be written, then the file.

Owns the name of the row, what it replaces, and the file. Leaves the model's files to bezel.model_sources, the row's
text to bezel_catalog.project_models.
"""

import difflib
import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from bezel.model_sources.cached import describe
from bezel.model_sources.description import Description
from bezel.model_sources.new_row import catalogued_id
from bezel.model_sources.places import ModelRefusedError
from bezel.model_sources.rows import free_id, notes_of, row_of
from bezel.operations.arguments.model import Arguments, Option, Reach, Word
from bezel.operations.catalog.stack_token import stack_token
from bezel.operations.changes.basis import check, check_place, place_of
from bezel.operations.changes.plan import Outcome, Plan, plain_all
from bezel.operations.context import Context
from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError
from bezel_catalog.project_models.reading import FILE, read_rows
from bezel_catalog.project_models.row import ModelRow, model_of
from bezel_catalog.project_models.text import with_row

NAME = "catalog_add_model"


class AddModelArguments(Arguments):
    """Which model."""

    model: Annotated[str, Reach.BEYOND, Word("MODEL")] = Field(
        max_length=500, description="OWNER/NAME[@REVISION] of a Hugging Face hub, a folder, or gs://BUCKET/FOLDER"
    )
    revision: Annotated[str | None, Reach.BEYOND, Option("REV")] = Field(
        None, max_length=200, description="branch, tag or commit of the repository (default: main)"
    )
    stack: Annotated[str | None, Reach.INSIDE, Option("STACK")] = Field(
        None, max_length=100, description="stack whose secret has the hub's token, where HF_TOKEN is not set"
    )
    replace: Annotated[bool, Reach.BEYOND] = Field(
        default=False, description="replace a row of this model that has other figures"
    )


def plan_add_model(context: Context, arguments: AddModelArguments) -> Plan:
    """Plan the row of a model.

    Raises:
        UserError: There is no such model, it cannot be read, no plan can be made for it, or its row exists.
    """
    text, row, description = _read(context, arguments)
    rows = read_rows(text)
    earlier = rows.get(row.id)
    is_empty = earlier is not None and _same(earlier, row)
    refusals = []
    if earlier is not None and not is_empty and not arguments.replace:
        refusals.append(
            f"{FILE} has this row with other values ({', '.join(_differing(earlier, row))}): stacks that name it would "
            "be planned by the new ones; add --replace, or remove the row"
        )
    changed = text if is_empty else with_row(text, row)
    difference = "".join(
        difflib.unified_diff(text.splitlines(keepends=True), changed.splitlines(keepends=True), FILE, FILE)
    )
    return Plan(
        operation=NAME,
        target=row.id,
        summary=_summary(row, is_empty=is_empty),
        arguments=arguments.model_dump(mode="json"),
        file_change=difference or None,
        notes=plain_all(notes_of(description, row)),
        refusals=tuple(refusals),
        basis={**place_of(context), "catalogue": _digest(text), "model": _digest(_content(row))},
        is_empty=is_empty,
    )


def apply_add_model(context: Context, plan: Plan) -> Outcome:
    """Write the row that was planned.

    Raises:
        ChangedError: The file or the model has changed since; nothing was written.
        UserError: The model cannot be read any more, or the file not written.
    """
    check_place(context, plan)
    text, row, _ = _read(context, AddModelArguments.model_validate(plan.arguments))
    check(plan, {**place_of(context), "catalogue": _digest(text), "model": _digest(_content(row))})
    if plan.is_empty:
        return Outcome(operation=NAME, target=plan.target, verdict="unchanged", details=(plan.summary,))
    file = context.folder / FILE
    try:
        write_whole(file, with_row(text, row))
    except OSError as error:
        consequence = f"it cannot be written: {error}; it is unchanged."
        raise UserError(Problem(FILE, None, consequence, "make the folder and the file writable.")) from None
    details = (f"{FILE} is written: commit it", f"a stack names the model by `bezel:model: {row.id}`")
    return Outcome(operation=NAME, target=plan.target, verdict="done", details=details)


def _read(context: Context, arguments: AddModelArguments) -> tuple[str, ModelRow, Description]:
    """The file's text, the new row, and what it was made from."""
    source = arguments.model.strip()
    _refuse_catalogued(source)
    text = _text(context)
    rows = read_rows(text)
    description = describe(
        source,
        arguments.revision or "",
        environ=context.environ,
        token=lambda: stack_token(context, arguments.stack),
        show=context.show,
        cancelled=context.cancelled,
    )
    row = row_of(description, free_id(description, rows), datetime.now(UTC).date())
    model_of(row, f"{FILE}: {row.id}")
    return text, row, description


def _refuse_catalogued(source: str) -> None:
    """Refuse a model that the catalogue has, before anything is read of it."""
    same = catalogued_id(source)
    if same is not None:
        consequence = "the catalogue has it, with figures that were measured, so nothing was read and nothing written."
        raise ModelRefusedError(Problem("MODEL", source, consequence, f"write `bezel:model: {same}` in the stack."))


def _text(context: Context) -> str:
    file = context.folder / FILE
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        consequence = f"it cannot be read: {error}, so no row was added."
        raise UserError(Problem(FILE, None, consequence, "make it a readable file in UTF-8.")) from None


def _same(earlier: ModelRow, row: ModelRow) -> bool:
    return not _differing(earlier, row)


def _differing(earlier: ModelRow, row: ModelRow) -> list[str]:
    """Names of the fields that differ; the day of the reading and the name of the revision say nothing of the model."""
    old, new = (replace(each, as_of="", revision="") for each in (earlier, row))
    return [name for name in ModelRow.__slots__ if getattr(old, name) != getattr(new, name)]


def _summary(row: ModelRow, *, is_empty: bool) -> str:
    figures = f"{row.parameters / 1e9:.3g}B parameters, {row.weight_bytes / 1e9:.3g} GB in {row.encoding}"
    return f"{FILE} has this row already" if is_empty else f"a row for {row.source}: {figures}"


def _content(row: ModelRow) -> str:
    return repr(replace(row, as_of=""))


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
