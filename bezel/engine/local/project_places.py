"""Places of a project below localcloud's folder: two projects on one localcloud may have stacks of the same name.

Imports little: every plain `pulumi` waits for it.
"""

import re
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")  # the engine's rule, but for names that lead out of a folder


def copies_folder(cloud: Path, project: str) -> Path:
    """The folder with the copies of a project's stack files.

    Args:
        cloud: localcloud's folder.
        project: The project's name.
    """
    return cloud / "stacks" / _folder_name(project)


def run_folder(cloud: Path, project: str, stack: str) -> Path:
    """The folder with the record of a stack's last run.

    Args:
        cloud: localcloud's folder.
        project: The project's name.
        stack: The stack's name.
    """
    return cloud / "runs" / _folder_name(project) / stack


def command_folder(cloud: Path, project: str) -> Path:
    """The folder with the `pulumi` of a project's shells; arguments as of `copies_folder`."""
    return cloud / "bin" / _folder_name(project)


def make_private(cloud: Path, folder: Path) -> None:
    """Make a folder below localcloud's, and those between the two, for this user alone."""
    cloud.mkdir(parents=True, exist_ok=True, mode=0o700)
    for each in reversed([folder, *folder.parents]):
        if cloud in each.parents:
            each.mkdir(exist_ok=True, mode=0o700)


def _folder_name(project: str) -> str:
    """The name as that of a folder; a name that the engine refuses gets a common one, until it has."""
    return project if _NAME.fullmatch(project) else "-"
