"""Stacks of this project that set what a vLLM release changes.

Owns the lines of the report. Leaves the comparison of releases to bezel_catalog, and the settings to the planner.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bezel.engine.project.project import ProjectError, find_project
from bezel.planner.base.parse import read_settings
from bezel.planner.rules.image_checks import recording_of
from bezel_base.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel.engine.project.project import Project
    from bezel_catalog.vllm.release_changes import Changes


def touched_lines(changes: Sequence[Changes], start: Path | None = None) -> list[str]:
    """Return a line for each stack of the project around a folder (this one by default) that sets something changed."""
    try:
        project = find_project(start or Path.cwd())
    except ProjectError:
        return []
    by_kind = {change.kind: change.touching for change in changes}
    lines, planned = [], []
    for stack in project.stacks():
        try:
            used, release = _used(project, stack)
        except UserError as error:
            lines.append(f"Stack {stack} cannot be read: {error}")
            continue
        planned.append(f"{stack} by {release}")
        options = sorted(used["options"] & by_kind.get("options", frozenset()))
        variables = sorted(used["variables"] & by_kind.get("variables", frozenset()))
        if names := [*options, *variables]:
            lines.append(f"Stack {stack} sets what changed: {', '.join(names)}.")
    if planned and not lines:
        lines.append("No stack of this project sets anything that changed or is gone.")
    return [*lines, f"Planned: {', '.join(planned)}."] if planned else lines


def _used(project: Project, stack: str) -> tuple[dict[str, frozenset[str]], str]:
    """The options and variables that a stack sets, and the recording by which it is planned.

    Raises:
        UserError: The stack file cannot be read.
    """
    settings, _ = read_settings(project.configuration(stack))  # what is wrong in it, `bezel plan` says
    options = frozenset(name.partition(".")[0].replace("_", "-") for name in settings.vllm)
    return {"options": options, "variables": frozenset(settings.variables)}, recording_of(settings)[1]
