"""Loader of the catalogue's data files: typed records, and an error for each missing or unknown field.

Owns the folder of the data files and the error of a look-up without a result. Leaves the meaning of the rows to the
modules beside it. No look-up falls back to another row: a value that is not in a file is unknown.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bezel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from _typeshed import DataclassInstance

DATA = Path(__file__).parent / "data"
Record = TypeVar("Record", bound="DataclassInstance")

# The type that a file must hold for a field of that annotation. A bool is not an int here, though it is one in Python.
_STORED: dict[str, type] = {
    "str": str,
    "str | None": str,
    "int": int,
    "int | None": int,
    "bool": bool,
    "float": float,
    "tuple[str, ...]": list,
}
_WORDS = {str: "text", int: "a whole number", bool: "true or false", float: "a number", list: "a list of texts"}


class DataFileError(UserError, ValueError):
    """A data file cannot be read; the text names file, row and field, for the person who edits it."""


class NotInCatalogueError(KeyError):
    """The catalogue has no record of the requested name.

    Attributes:
        kind: kind of the record, e.g. "accelerator".
        name: the requested name.
        known: every known name, sorted.
        closest: the known name that resembles the requested one most, if any does.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(name)
        self.kind = kind
        self.name = name
        self.known = tuple(sorted(known))
        self.closest = closest(name, self.known)

    def __str__(self) -> str:
        return f"no {self.kind} named {self.name!r} in the catalogue; known: {', '.join(self.known)}"


def closest(name: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """Return the known name most like `name`; None when none reaches the likeness (0 nothing in common, 1 equal)."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=likeness)
    return found[0] if found else None


def region_names() -> frozenset[str]:
    """Return the names of every region of Google Cloud."""
    return frozenset(read_toml("regions.toml")["names"])


def make(kind: type[Record], where: str, row: Mapping[str, Any], **given: object) -> Record:
    """Return the record of a row: every field present, none unknown, each of its type.

    Args:
        kind: a dataclass; lists of the file become tuples.
        where: file and row, for the message.
        row: the row of the file.
        given: fields that the caller computes; the row may not hold them.

    Raises:
        DataFileError: the row does not fit; the message names every field that does not.
    """
    fields = {field.name: field for field in dataclasses.fields(kind) if field.name not in given}
    problems = [f"no field is named {name} (known: {', '.join(fields)})" for name in row if name not in fields]
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in row:
            if field.default is dataclasses.MISSING:
                problems.append(f"the field {name} is missing")
            continue
        stored, value = _STORED[str(field.type)], row[name]
        if stored is float and type(value) is int:
            value = float(value)
        texts = stored is not list or (isinstance(value, list) and all(isinstance(each, str) for each in value))
        if type(value) is not stored or not texts:
            problems.append(f"{name} = {value!r} is not {_WORDS[stored]}")
        values[name] = tuple(value) if isinstance(value, list) else value
    if problems:
        raise DataFileError(f"{where}: {'; '.join(problems)}")
    return kind(**values, **given)


def read_toml(file: str) -> dict[str, Any]:
    """Reads one data file of the catalogue.

    Raises:
        DataFileError: it is not valid TOML.
    """
    try:
        return tomllib.loads((DATA / file).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise DataFileError(f"{file}: {error}") from None
