"""Reads and writes of a stack's file by edits: inside the project's folder, of a bounded size, whole or not at all.

Owns that of two writers one waits for the other, and that a new file replaces nothing.
"""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bezel.engine.project.own_program import no_settings_error, reads_settings
from bezel.engine.project.project import STACK_NAME, Project
from bezel.operations.changes.basis import ChangedError
from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError, WrongValueError
from bezel_base.text.shell import shell_word

_MOST_BYTES = 1 << 20
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def new_file(project: Project, stack: str) -> Path:
    """The file of a stack that has none yet.

    Raises:
        WrongValueError: No stack can have this name, or there is such a file.
        ProjectError: The project's program reads no stack file.
    """
    if not STACK_NAME.fullmatch(stack) or not stack.strip(".") or stack.startswith("-"):
        consequence = "a stack's name has at most 100 letters, digits, periods, hyphens and underscores."
        raise WrongValueError(Problem("STACK", stack, consequence, "write a word, e.g. chat-eu."))
    file = project.folder / f"Pulumi.{stack}.yaml"
    names = (each.name.casefold() for each in project.folder.glob("Pulumi.*.yaml"))
    if os.path.lexists(file) or file.name.casefold() in names:
        repair = "leave --new out to edit it, or choose another name."
        raise WrongValueError(Problem("STACK", stack, f"there is {file.name}, and nothing is overwritten.", repair))
    if not reads_settings(project):
        raise no_settings_error(stack)
    return file


def text_of(folder: Path, file: Path) -> str:
    """The file's text with its line ends.

    Raises:
        UserError: It is no file that may be written.
    """
    name = file.name
    if not file.resolve().is_relative_to(folder.resolve()):
        consequence = "it is a link to a file outside of the project's folder, and nothing is written there."
        raise UserError(Problem(name, None, consequence, "put the file itself into the folder."))
    status = file.stat()
    if not status.st_mode & _WRITABLE:
        repair = f"`chmod u+w {shell_word(name)}` makes it writable."
        raise UserError(Problem(name, None, "it is read-only, so nothing is written.", repair))
    if status.st_size > _MOST_BYTES:
        consequence = f"it has {status.st_size} bytes; a stack's file of more than {_MOST_BYTES} is not edited."
        raise UserError(Problem(name, None, consequence, "edit it by hand."))
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(Problem(name, None, f"it is not UTF-8 text: {error}.", "save it as UTF-8.")) from None


def write_file(file: Path, before: str | None, after: str) -> None:
    """Write the file, with the permissions that it has. To be called within `alone_in`.

    Args:
        file: The file.
        before: The text that it has; None for a file that does not exist.
        after: The text that it gets.

    Raises:
        ChangedError: It has another text by now; nothing was written.
        UserError: It cannot be written; it is unchanged.
    """
    target = file.resolve()
    present = target.read_bytes() if target.is_file() else None
    if present != (None if before is None else before.encode()) or (before is None and os.path.lexists(file)):
        consequence = "the file has changed since it was planned; nothing was written."
        raise ChangedError(Problem(file.name, None, consequence, "plan again, and look at it."))
    try:
        write_whole(target, after, mode=0o644 if before is None else stat.S_IMODE(target.stat().st_mode))
    except OSError as error:
        consequence = f"it cannot be written: {os.strerror(error.errno) if error.errno else error}; it is unchanged."
        raise UserError(Problem(file.name, None, consequence, "make the folder and the file writable.")) from None


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Edit files of a folder while no other edit does."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
