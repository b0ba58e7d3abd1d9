"""`bezel new stack NAME --from STACK`: a copy of a stack's file under another name, with what must differ.

What is deployed is named by its stack, so the names of service and accounts follow by themselves. What would belong to
both is changed: who creates the bucket of weights, keys of the stack's secrets, the time of a restart. A new
environment gets limits of its own (`new_environment`).
"""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bezel.cli.new.new_environment import pipeline_edits
from bezel.engine.project.pipeline_file import FILE
from bezel.engine.project.project import STACK_NAME, Project, find_project
from bezel.operations.stack_edits.copied_file import copied_text
from bezel.planner import make_plan
from bezel.planner.base.environments import is_environment
from bezel.planner.base.problems import NAMESPACE
from bezel.planner.base.stack_file import read_stack_file
from bezel_base.atomic_write import write_whole
from bezel_base.errors import NOT_SET, Problem, WrongValueError
from bezel_base.terminal.screen import show_text
from bezel_base.text.shell import shell_word
from bezel_catalog import Model

_PROJECT = "my-project"  # a plan needs one; nothing that is written names it


def make_stack(names: list[str], source: str, options: argparse.Namespace) -> None:
    """Write the file of another stack, and what its environment needs.

    Args:
        names: Words after `stack`.
        source: The stack that is copied; "" for none.
        options: Of the command.

    Raises:
        WrongValueError: Nothing can be made of what is given; nothing was written.
        PlanError: The stack could not be deployed; nothing was written.
    """
    name = _checked_name(names)
    _check_options(options)
    project = find_project(Path.cwd())
    source = _checked_source(project, name, source)
    environment = options.environment or str(project.configuration(source).get("environment") or "dev")
    if not is_environment(environment):
        consequence = "no stack can have such an environment."
        repair = "write at most 32 lower-case letters, digits and hyphens, with a letter first."
        raise WrongValueError(Problem("--environment", environment, consequence, repair))
    text = copied_text(project, source, environment)
    _check_plan(text, name, project.models())
    edits = dict(pipeline_edits(project, name, environment, str(_environment_of(project, source))))
    edits = {path: content for path, content in edits.items() if path != FILE} | {
        f"Pulumi.{name}.yaml": text,
        **{path: content for path, content in edits.items() if path == FILE},
    }
    _write(project.folder, edits)
    show_text(f"{name}: as {source}, in the environment {environment}")
    for path in edits:
        show_text(f"    {path}")
    show_text(f"`make up STACK={shell_word(name)}` rehearses it on the embedded cloud.")


def _checked_name(names: list[str]) -> str:
    repair = "write `bezel new stack NAME --from STACK`; for a project of this name `bezel new ./stack`."
    if len(names) != 1:
        consequence = "a stack has one name." if names else "the new stack needs a name."
        raise WrongValueError(Problem("NAME", " ".join(names) or NOT_SET, consequence, repair))
    (name,) = names
    if not STACK_NAME.fullmatch(name) or not name.strip(".") or name.startswith("-"):
        consequence = "a stack's name has at most 100 letters, digits, periods, hyphens and underscores."
        raise WrongValueError(Problem("NAME", name, consequence, repair))
    return name


def _check_options(options: argparse.Namespace) -> None:
    for name in ("model", "accelerator", "region", "project", "packages"):
        if value := getattr(options, name):
            consequence = "a copied stack keeps what it is copied from."
            raise WrongValueError(Problem(f"--{name}", value, consequence, "leave it out, and edit the new file."))


def _checked_source(project: Project, name: str, source: str) -> str:
    stacks = project.stacks()
    if not source:
        listed = ", ".join(stacks) or "(no stacks)"
        raise WrongValueError(Problem("--from", NOT_SET, "a stack is copied.", f"name one of {listed}."))
    project.stack_file(source)
    twin = next((stack for stack in stacks if stack.casefold() == name.casefold()), None)
    if twin is not None:
        consequence = f"there is Pulumi.{twin}.yaml, and nothing is overwritten."
        raise WrongValueError(Problem("NAME", name, consequence, "choose another name, or edit that file."))
    return source


def _environment_of(project: Project, stack: str) -> object:
    return project.configuration(stack).get("environment") or "dev"


def _check_plan(text: str, name: str, project_models: Mapping[str, Model]) -> None:
    """Plan the stack as a preview does; its own project or a stand-in names what a plan names by it."""
    content, _ = read_stack_file(text, f"Pulumi.{name}.yaml")
    values: Mapping[str, Any] = (content or {}).get("config") or {}
    prefix = f"{NAMESPACE}:"
    configuration = {
        key.removeprefix(prefix).removeprefix("config:"): value
        for key, value in values.items()
        if key.startswith(prefix)
    }
    make_plan(configuration, project=str(values.get("gcp:project") or _PROJECT), stack=name, models=project_models)


def _write(folder: Path, edits: Mapping[str, str]) -> None:
    """Write the files in their order: the pipeline's file, which names the others, is the last one."""
    try:
        for path, content in edits.items():
            write_whole(folder / path, content)
    except OSError as error:
        consequence = f"the files cannot be written: {os.strerror(error.errno) if error.errno else error}."
        repair = "make the folder writable, then run the same command again."
        raise WrongValueError(Problem(str(folder), None, consequence, repair)) from None
