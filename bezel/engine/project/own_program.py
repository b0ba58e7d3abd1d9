"""Programs that declare their services themselves, of a user's own: their stack files have no settings to plan.

What needs a state or an address works for them; what plans or changes a stack file is refused with what to do instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_base.errors import Problem
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from bezel.engine.project.project import Project, ProjectError

_READER = "bezel_stacks"
"""The package that reads the settings of stack files; a program without it reads none."""


def declares_its_services(project: Project, stack: str) -> bool:
    """Whether a stack's program takes no settings of a stack file: the file has none, and the program reads none.

    Raises:
        ProjectError: There is no such stack, or its file cannot be read.
    """
    return not project.configuration(stack) and not reads_settings(project)


def reads_settings(project: Project) -> bool:
    """Whether the program of a project reads the settings of stack files."""
    program = project.folder / "__main__.py"
    return program.is_file() and _READER in program.read_text(encoding="utf-8", errors="replace")


def check_settings(project: Project, stack: str) -> None:
    """Refuse a stack whose program declares its services itself.

    Raises:
        ProjectError: It does, or there is no such stack, or its file cannot be read.
    """
    if declares_its_services(project, stack):
        raise no_settings_error(stack)


def no_settings_error(stack: str) -> ProjectError:
    """The refusal of a stack whose program reads no settings."""
    from bezel.engine.project.project import ProjectError as Refusal  # late: a list of operations needs no project

    return Refusal(
        Problem(
            "STACK",
            stack,
            f"the program of this folder declares its services itself, so Pulumi.{stack}.yaml has no settings.",
            "change the arguments of `VllmService` in the program; "
            f"`pulumi preview --stack {shell_word(stack)}` plans them.",
        )
    )
