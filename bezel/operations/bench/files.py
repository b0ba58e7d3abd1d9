"""Files that a caller names: below the project's folder, not hidden, and never one that is not the benchmark's.

A name may come from an agent. What is read is what the caller could read anyway, but nothing outside of the project;
what is written replaces nothing, so that no measurement is lost.
"""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bezel_base.errors import Problem, UserError

FileName = Annotated[str, Field(min_length=1, max_length=300)]
_MOST_BYTES = 64 << 20


def existing(folder: Path, names: Iterable[str], key: str) -> list[Path]:
    """The files of these names, to read.

    Args:
        folder: The project's folder.
        names: Names relative to it.
        key: Name of the argument, for the message.

    Raises:
        UserError: One of them is no such file, is hidden, is outside of the folder or is larger than 64 MiB.
    """
    files, problems = [], []
    for name in names:
        file, refusal = _below(folder, name)
        refusal = refusal or _unreadable(file)
        if refusal:
            problems.append(Problem(key, name, refusal, "name a file below the project's folder."))
        files.append(file)
    if problems:
        raise UserError(*problems)
    return files


def new(folder: Path, name: str, key: str, suffix: str, *, beside: str = "") -> Path:
    """The path of a file to write, which does not exist yet.

    Args:
        folder: The project's folder.
        name: Its name relative to it; the folder it is in exists.
        key: Name of the argument, for the message.
        suffix: What it ends with.
        beside: Suffix of a file beside it; where that exists, the file may exist, as it is then continued.

    Raises:
        UserError: It may not be written.
    """
    file, refusal = _below(folder, name)
    if refusal := refusal or _unwritable(file, suffix, beside):
        repair = f"name a new file below the project's folder, e.g. result{suffix}."
        raise UserError(Problem(key, name, refusal, repair))
    return file


def _unreadable(file: Path) -> str:
    """Why a file cannot be read, as a sentence; "" if it can."""
    if not file.is_file():
        return "there is no such file."
    return "it is larger than 64 MiB." if file.stat().st_size > _MOST_BYTES else ""


def _unwritable(file: Path, suffix: str, beside: str) -> str:
    """Why a file may not be written, as a sentence; "" if it may."""
    if file.suffix != suffix:
        return f"its name does not end with {suffix}."
    if not file.parent.is_dir():
        return "its folder does not exist."
    continued = bool(beside) and file.is_file() and file.with_name(f"{file.stem}{beside}").is_file()
    return "it exists, and would be overwritten." if file.exists() and not continued else ""


def _below(folder: Path, name: str) -> tuple[Path, str]:
    """The path of a name, and why it is refused, as a sentence; "" if it is not."""
    if not name.isprintable():
        return folder, "it has a character that no terminal shows."
    try:
        root = folder.resolve()
        file = (root / name).resolve()
        if not file.is_relative_to(root) or file == root:
            return file, "it is outside of the project's folder."
        # Raises for a name that no file system takes: from Python 3.14 on Path.exists does not.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            file.stat()
    except (OSError, ValueError, RuntimeError):
        return folder, "it is not the name of a file."
    is_hidden = any(part.startswith(".") for part in file.relative_to(root).parts)
    return file, "it is hidden." if is_hidden else ""
