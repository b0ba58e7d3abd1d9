"""Folder of a new project, made whole or not at all: written beside its place under another name, then renamed.

Leaves out the name that it has until then, and what a killed process leaves (`unfinished`).
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from bezel.cli.new.unfinished import remove_abandoned, unfinished_folder
from bezel.engine.project.folder import project_folder
from bezel.engine.project.git import GitError, git
from bezel_base.console import note
from bezel_base.errors import Problem, UserError, WrongValueError, format_value

# The engine's rule for a project's name; a folder that begins with a hyphen or a period is an option, or hidden.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def checked_target(word: str, here: Path) -> Path:
    """The folder of a new project: `.` is the present one, which has to be empty.

    Args:
        word: The name that the user gave.
        here: The present folder.

    Raises:
        WrongValueError: No project can have this name, or nothing can be made there.
    """
    target = here.absolute() if word == "." else here.absolute() / word
    name = target.name
    if word != "." and word != name:
        consequence = "it is a path, and a project's name is that of its folder in the present one."
        raise _refusal(word, consequence, f"change to {target.parent} first, then `bezel new {name}`.")
    if not _NAME.fullmatch(name):
        consequence = "a Pulumi project has at most 100 letters, digits, periods, hyphens and underscores as a name."
        near = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:100]
        raise _refusal(name, consequence, f"choose another name{f', e.g. {near}' if _NAME.fullmatch(near) else ''}.")
    if target.is_symlink():
        raise _refusal(word, f"it is a link to {target.readlink()}.", "remove the link, or choose another name.")
    if target.exists() and not target.is_dir():
        raise _refusal(word, "there is a file of this name, which is not overwritten.", "choose another name.")
    with _as_problem(target):
        if target.is_dir() and (entries := sorted(entry.name for entry in target.iterdir())):
            listed = ", ".join(map(format_value, entries[:3])) + (", …" if len(entries) > 3 else "")
            consequence = f"the folder holds {listed}, and nothing is overwritten."
            raise _refusal(word, consequence, "choose a new name, or an empty folder.")
    _check_around(word, target)
    return target


def _check_around(word: str, target: Path) -> None:
    """Refuse a place within another project: its engine, or its forge, would take this one for a part of it."""
    if outer := project_folder(target.parent):
        consequence = f"it lies in the Pulumi project {outer}, whose checkout would hold this one."
        raise _refusal(word, consequence, f"change to a folder outside of {outer} first.")
    try:
        top = git(target.parent, "rev-parse", "--show-toplevel")
    except (GitError, UserError):
        return  # no repository, or no git
    consequence = f"it lies in the git repository {top}: a forge finds workflows at the top of a repository alone."
    raise _refusal(word, consequence, "change to a folder outside of it first; `--git` makes a repository of its own.")


def make_folder(target: Path, files: Mapping[str, str], *, with_git: bool) -> None:
    """Make the project's folder with its files.

    Args:
        target: The folder: missing, or empty.
        files: Path below it -> text.
        with_git: Whether it becomes a git repository.

    Raises:
        WrongValueError: It cannot be made; nothing is left.
        UserError: git is missing or failed; nothing is left.
    """
    for part in remove_abandoned(target.parent):
        note(f"removed {part.name}, which a killed run left")
    with _as_problem(target), unfinished_folder(target.parent) as part:
        for path, text in files.items():
            file = part / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            if text.startswith("#!"):
                file.chmod(0o755)
        if with_git:
            _init(part)
        part.chmod(0o755)
        part.rename(target)  # in place of an empty folder too; one that another process has filled is kept


def _init(folder: Path) -> None:
    try:
        git(folder, "init", "--quiet", "--initial-branch", "main")
    except GitError as error:
        raise UserError(Problem("git init", None, str(error), "leave out --git.")) from None


@contextlib.contextmanager
def _as_problem(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        consequence = f"the folder cannot be made: {os.strerror(error.errno) if error.errno else error}."
        repair = "choose a folder that you may write to, with free space."
        raise WrongValueError(Problem("NAME", str(target), consequence, repair)) from None


def _refusal(word: str, consequence: str, repair: str) -> WrongValueError:
    return WrongValueError(Problem("NAME", word, consequence, repair))
