"""The checkout's `bezel.toml` in a set-up: checked before anything is created, written where there is none."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from bezel.engine.project.folder import project_folder
from bezel.engine.project.pack_limits import PACKS
from bezel.engine.project.pipeline_file import (
    ENVIRONMENTS,
    FILE,
    PROTECTED,
    REQUIRED_PACKS,
    Pipeline,
    pipeline_of,
    read_pipeline,
)
from bezel.engine.project.project import Project
from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError


def checkout_around(start: Path) -> Project | None:
    """The project around a folder, if it has the policy packs of a pipeline."""
    folder = project_folder(start)
    if folder is None or not all((folder / PACKS / pack).is_dir() for pack in REQUIRED_PACKS):
        return None
    return Project(folder)


def checked_pipeline(project: Project, environments: Iterable[str]) -> Pipeline:
    """The pipeline of a checkout whose forge has these environments.

    Raises:
        UserError: The file has problems, or names an environment whose jobs may not deploy.
    """
    pipeline, allowed = pipeline_of(project), set(environments)
    missing = sorted({*pipeline.stacks.values()} - allowed)
    if missing:
        stacks = {
            name: [stack for stack, environment in pipeline.stacks.items() if environment == name] for name in missing
        }
        consequence = "the forge's jobs get no account for it, so its deploys would fail."
        repair = "add it with --environment, or take its stacks out of the file."
        raise UserError(
            *(Problem(f"{FILE}: {name}", ", ".join(of), consequence, repair) for name, of in stacks.items())
        )
    return pipeline


def write_pipeline(project: Project, pipeline: Pipeline) -> Path:
    """Write what holds without a file into one, and return its path.

    Raises:
        UserError: The result has problems: a pack or its limits are missing.
    """
    names = dict.fromkeys([*ENVIRONMENTS, *pipeline.stacks.values()])
    packs = {
        pack: {name: file for name in names if (project.folder / (file := _limits(pack, name))).is_file()}
        for pack in REQUIRED_PACKS
    }
    written = project.folder / FILE
    write_whole(written, text(pipeline.stacks, packs))
    read_pipeline(project)
    return written


def _limits(pack: str, environment: str) -> str:
    return f"{PACKS}/{pack}.{environment}.json"


def text(stacks: Mapping[str, str], packs: Mapping[str, Mapping[str, str]]) -> str:
    """The content of the file."""
    lines = [
        "# What the pipeline deploys, who approves it, and which limits hold. See docs/gitops.md.",
        f"protected_environments = [{json.dumps(PROTECTED)}]",
        "",
        "[stacks]",
        *(f"{json.dumps(stack)} = {json.dumps(environment)}" for stack, environment in stacks.items()),
    ]
    for pack, files in packs.items():
        lines += ["", f"[packs.{pack}]", *(f"{name} = {json.dumps(file)}" for name, file in files.items())]
    return "\n".join(lines) + "\n"
