"""Edits of the pipeline's file and of the packs' limits for a new stack, whose environment may be new too.

A new environment gets copies of the limits of the one that its stack is copied from, with its own name in them: what
it may cost is then changed there, and reviewed.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from bezel.engine.project.pipeline_file import FILE, REQUIRED_PACKS, Pipeline, read_pipeline
from bezel.engine.project.project import Project
from bezel_base.errors import Problem, UserError


def pipeline_edits(project: Project, stack: str, environment: str, like: str) -> Iterator[tuple[str, str]]:
    """Path -> new content; nothing where the project has no pipeline's file.

    Args:
        project: The project.
        stack: Name of the new stack.
        environment: Its environment.
        like: The environment whose limits a new one starts with.

    Raises:
        PipelineError: The pipeline's file has problems.
        UserError: The file cannot be changed, or what it names is in the way; nothing was written.
    """
    file = project.folder / FILE
    if not file.exists():
        return
    pipeline = read_pipeline(project)
    text = file.read_text(encoding="utf-8")
    text = _with_line(text, "[stacks]", f"{_key(stack)} = {json.dumps(environment)}")
    meant: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    meant["stacks"][stack] = environment
    for pack, path in _missing_limits(pipeline, environment, like):
        limits, new = project.folder / path, f"policies/{pack}.{environment}.json"
        if (project.folder / new).exists():
            consequence = f"there is such a file, which {FILE} does not name; nothing is overwritten."
            raise UserError(Problem(new, None, consequence, f"name it below [packs.{pack}], or remove it."))
        yield new, _renamed_limits(limits.read_text(encoding="utf-8"), like, environment)
        text = _with_line(text, f"[packs.{pack}]", f"{environment} = {json.dumps(new)}")
        meant["packs"][pack][environment] = new
    if tomllib.loads(text) != meant:
        consequence = "the file is written in a way that this command cannot edit; nothing was written."
        line = f"{_key(stack)} = {json.dumps(environment)}"
        raise UserError(Problem(FILE, None, consequence, f"add the stack by hand below [stacks]: `{line}`."))
    yield FILE, text


def _key(name: str) -> str:
    """A key of TOML: quoted where it is no bare one."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _missing_limits(pipeline: Pipeline, environment: str, like: str) -> list[tuple[str, str]]:
    """Packs without limits for an environment, each with the file of the other one."""
    lacking = [pack for pack in REQUIRED_PACKS if not {environment, like} & pipeline.packs.get(pack, {}).keys()]
    if lacking:
        consequence = f"there are limits neither for {environment} nor for {like}, so nothing would judge the stack."
        repair = "name files with limits below [packs], or choose an environment that has some: --environment."
        raise UserError(*(Problem(f"{FILE}: packs.{pack}", None, consequence, repair) for pack in lacking))
    return [(pack, files[like]) for pack, files in pipeline.packs.items() if environment not in files and like in files]


def _renamed_limits(text: str, like: str, environment: str) -> str:
    """Limits for another environment: the layout of the file stays."""
    return text.replace(f"{json.dumps(like)}:", f"{json.dumps(environment)}:")


def _with_line(text: str, table: str, line: str) -> str:
    """The text with a line at the end of a table; unchanged where there is no such table."""
    lines = text.splitlines()
    starts = [number for number, each in enumerate(lines) if each.strip() == table]
    if not starts:
        return text
    end = next((n for n in range(starts[0] + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
    while end > starts[0] + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return "\n".join([*lines[:end], line, *lines[end:]]) + "\n"
