"""Edit of a stack's file in two steps: the new text with its difference, its problems and its price, then the file.

Also of a file that does not exist yet. Leaves out the text of the file, how it is read and written
(`bezel.operations.stack_edits`), and a deploy, which it never begins.
"""

import difflib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bezel.engine.project.own_program import check_settings
from bezel.engine.project.pipeline_file import FILE as PIPELINE
from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import Stack
from bezel.operations.changes.basis import check, check_place, place_of
from bezel.operations.changes.plan import Outcome, Plan, plain_all
from bezel.operations.changes.stack_lock import check_cancelled
from bezel.operations.context import Context
from bezel.operations.deploy.deploy import price_of
from bezel.operations.stack.assignments import Assignment, assignments_of
from bezel.operations.stack.judged_text import JudgedText, judge
from bezel.operations.stack_edits.copied_file import copied_text
from bezel.operations.stack_edits.file_text import content_of, keys_of, value_at, with_setting
from bezel.operations.stack_edits.file_writes import alone_in, new_file, text_of, write_file
from bezel.operations.stack_edits.removed_text import without_setting
from bezel.operations.touches import BeyondStackError
from bezel.planner.base.problems import NAMESPACE
from bezel.resource_cost.price_line import price_line
from bezel.resource_cost.stack_cost import StackCost
from bezel_base.errors import ENCRYPTED, NOT_SET, Problem, WrongValueError, format_value
from bezel_base.text.redaction import redact
from bezel_base.text.shell import shell_word
from bezel_catalog.project_models.reading import FILE as CATALOGUE

NAME = "stack_edit"
INSIDE = frozenset(
    {
        *("environment", "deletion_protection", "model", "accelerator", "region", "vllm_version", "vllm"),
        *("regions", "optional_regions"),
        *("resources", "scaling", "rollout", "restarted_at", "probe", "access", "variables", "lease", "fallback"),
        *("cost", "labels"),
    }
)
"""Settings that name nothing which may belong to another stack; a server of some stacks changes these alone."""
_MOST = 50


class EditArguments(Arguments):
    """Which file, and what is written."""

    stack: Stack
    set: Annotated[tuple[str, ...], Reach.INSIDE, Option("KEY=VALUE")] = Field(
        (), max_length=_MOST, description="setting=value in YAML, e.g. scaling.max_instances=2"
    )
    unset: Annotated[tuple[str, ...], Reach.INSIDE, Option("KEY")] = Field(
        (), max_length=_MOST, description="setting to remove"
    )
    new: Annotated[bool, Reach.INSIDE] = Field(default=False, description="make the file")
    copy_of: Annotated[str | None, Reach.BEYOND, Option("STACK")] = Field(
        None, description="with new: stack whose file is copied"
    )


@dataclass(frozen=True)
class _FileEdit:
    """A file and its new text; `before` is None for a file that does not exist."""

    file: Path
    before: str | None
    after: str
    summary: str
    judged: JudgedText


def plan_edit(context: Context, arguments: EditArguments) -> Plan:
    """Plan an edit of a stack's file.

    Raises:
        UserError: There is no such file, or it exists already, a setting cannot be written, or nothing is asked for.
    """
    edited = _edit_of(context, arguments)
    before, judged = edited.before, edited.judged
    was = StackCost() if before is None else judge(context, arguments.stack, before).cost
    return Plan(
        operation=NAME,
        target=arguments.stack,
        summary=edited.summary,
        arguments=arguments.model_dump(mode="json"),
        file_change=_difference(edited),
        price=price_line(was, judged.cost) if judged.cost is not None else None,
        price_before=price_of(was),
        price_after=price_of(judged.cost),
        warnings=plain_all(judged.plan.warnings if judged.plan is not None else ()),
        notes=tuple(_notes(context, arguments, edited)),
        refusals=plain_all(judged.problems),
        basis=_basis(context, edited),
        is_empty=edited.after == before,
    )


def apply_edit(context: Context, plan: Plan) -> Outcome:
    """Write the file that was planned.

    Raises:
        ChangedError: The file, the catalogue or the new text's plan has changed since; nothing was written.
        UserError: The file cannot be written; it is unchanged.
    """
    check_place(context, plan)
    arguments = EditArguments.model_validate(plan.arguments)
    with alone_in(context.folder):
        _check_present(context, plan, arguments)
        edited = _edit_of(context, arguments)
        check(plan, _basis(context, edited))
        if edited.after == edited.before:
            return Outcome(operation=NAME, target=plan.target, verdict="unchanged")
        check_cancelled(context)
        write_file(edited.file, edited.before, edited.after)
    details = (f"{edited.file.name} is written; nothing is deployed: `bezel deploy {shell_word(plan.target)}`",)
    return Outcome(operation=NAME, target=plan.target, verdict="done", price=plan.price, details=details)


def check_scope(_context: Context, arguments: EditArguments) -> None:
    """Refuse a setting that may name what belongs to another stack.

    Raises:
        BeyondStackError: One of them may.
        WrongValueError: One of them cannot be written at all.
    """
    for each in assignments_of(arguments.set, arguments.unset, arguments.stack):
        if each.path[0] not in INSIDE:
            repair = f"a person sets it; settings that are changed here: {', '.join(sorted(INSIDE))}."
            raise BeyondStackError(each.name, None, arguments.stack, repair)


def _edit_of(context: Context, arguments: EditArguments) -> _FileEdit:
    stack, project = arguments.stack, context.project
    wanted = assignments_of(arguments.set, arguments.unset, stack)
    file: Path
    before: str | None
    if arguments.new:
        file, before, text = new_file(project, stack), None, _new_text(context, arguments)
    else:
        if arguments.copy_of is not None:
            consequence = "only a new file is copied from another one."
            raise WrongValueError(Problem("--copy-of", arguments.copy_of, consequence, "add --new, or leave it out."))
        if not wanted:
            repair = "add --set KEY=VALUE or --unset KEY; `bezel explain` names the settings."
            raise WrongValueError(Problem("--set, --unset", NOT_SET, "there is nothing to change.", repair))
        file = project.stack_file(stack)
        before = text = text_of(context.folder, file)
        check_settings(project, stack)
    after, changes = text, []
    for each in wanted:
        after, line = _with(after, file.name, each)
        changes.append(line)
    if arguments.new:
        changes.insert(0, f"new file {file.name}" + (f", as {arguments.copy_of}" if arguments.copy_of else ""))
    return _FileEdit(file, before, after, ", ".join(changes), judge(context, stack, after))


def _new_text(context: Context, arguments: EditArguments) -> str:
    """The text of a new file before anything is set in it."""
    source, project = arguments.copy_of, context.project
    if source is None:
        if not arguments.set:
            repair = "add --copy-of STACK, or --set with model, accelerator and region."
            raise WrongValueError(Problem("--set, --copy-of", NOT_SET, "the new file would be empty.", repair))
        return ""
    project.stack_file(source)
    return copied_text(project, source, str(project.configuration(source).get("environment") or "dev"))


def _with(text: str, name: str, wanted: Assignment) -> tuple[str, str]:
    """The text with one setting changed, and the change in words."""
    content = content_of(text, name)
    keys = keys_of(content, NAMESPACE, wanted.path)
    present = value_at(content, keys)
    if isinstance(present, dict) and "secure" in present:
        consequence = "its value is encrypted by the stack's key, and is changed by the engine alone."
        repair = "set or remove it by the engine, in the project's folder."
        raise WrongValueError(Problem(wanted.name, ENCRYPTED, consequence, repair))
    was = NOT_SET if present is None else format_value(present)
    if wanted.is_removed:
        if present is None:
            raise WrongValueError(
                Problem(f"--unset {wanted.name}", NOT_SET, f"{name} does not set it.", "leave it out.")
            )
        return without_setting(text, name, NAMESPACE, wanted.path), f"{wanted.name} {was} -> {NOT_SET}"
    if isinstance(present, dict | list) and not isinstance(wanted.value, type(present)):
        kind = "a section of settings" if isinstance(present, dict) else "a list"
        consequence = f"it is {kind} in {name}, and one value cannot take its place."
        repair = "set it as a whole in YAML, or one key of it, e.g. scaling.max_instances=2; --unset removes it."
        raise WrongValueError(Problem(wanted.name, format_value(wanted.value), consequence, repair))
    line = f"{wanted.name} {was} -> {format_value(wanted.value)}"
    return with_setting(text, name, NAMESPACE, wanted.path, wanted.value), line


def _notes(context: Context, arguments: EditArguments, edited: _FileEdit) -> Iterator[str]:
    if edited.judged.problems:
        yield "the file would have these problems, so nothing is written; set all of them in one call"
    else:
        yield "policies and quotas are judged when it is deployed"
    if arguments.new and (context.folder / PIPELINE).is_file():
        yield f"a pipeline deploys it once {PIPELINE} names it below [stacks]"


def _basis(context: Context, edited: _FileEdit) -> dict[str, str]:
    catalogue = context.folder / CATALOGUE
    return {
        **place_of(context),
        "file": "none" if edited.before is None else _digest(edited.before),
        "catalogue": _digest(catalogue.read_bytes()) if catalogue.is_file() else "none",
        "answer": _digest(f"{edited.after}\0{edited.judged.digest}"),
    }


def _check_present(context: Context, plan: Plan, arguments: EditArguments) -> None:
    """Refuse a plan whose file has appeared or gone, before its text is looked for."""
    is_there = os.path.lexists(context.folder / f"Pulumi.{arguments.stack}.yaml")
    if is_there == arguments.new:
        check(plan, {**plan.basis, "file": "none" if not is_there else "another"})


def _difference(edited: _FileEdit) -> str | None:
    name = edited.file.name
    old, new = (edited.before or "").splitlines(), edited.after.splitlines()
    lines = difflib.unified_diff(old, new, "/dev/null" if edited.before is None else name, name, lineterm="", n=1)
    return redact("\n".join(lines)) or None


def _digest(content: str | bytes) -> str:
    content = content.encode(errors="surrogateescape") if isinstance(content, str) else content
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
