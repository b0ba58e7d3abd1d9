"""Loader of the catalogue's data files: typed records, and an error for each missing or unknown field.

Owns the folder of the data files and the error of a look-up without a result. Leaves the meaning of the rows to the
modules beside it. No look-up falls back to another row: a value that is not in a file is unknown.
"""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_catalog.likeness import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from _typeshed import DataclassInstance

DATA = Path(__file__).parent / "data"
Record = TypeVar("Record", bound="DataclassInstance")

_EXPECTED = {
    "str": "a text",
    "int": "an integer",
    "bool": "true or false",
    "float": "a number",
    "tuple[str, ...]": "a list of texts",
    "tuple[int, ...]": "a list of integers",
    "Decimal": "a number in quotation marks",
}


class DataFileError(UserError, ValueError):
    """A data file cannot be read; its problems name file, row and field."""


class NotInCatalogueError(KeyError):
    """The catalogue has no record of the requested name.

    Attributes:
        kind: kind of the record, e.g. "accelerator".
        name: the requested name.
        known: every known name, sorted.
        closest: the known name that was probably meant, if any.
    """

    def __init__(self, kind: str, name: str, names: Iterable[str]) -> None:
        super().__init__(name)
        self.kind = kind
        self.name = name
        self.known = tuple(sorted(names))
        self.closest = closest(name, self.known)

    def __str__(self) -> str:
        return f"the catalogue has no {self.kind} {self.name!r}; known: {', '.join(self.known)}"


@functools.cache
def region_names() -> frozenset[str]:
    """Return the names of every region of Google Cloud."""
    return frozenset(read_toml("regions.toml")["names"])


def make(kind: type[Record], where: str, row: Mapping[str, Any], **computed: object) -> Record:
    """Return the record of a row: every field present, none unknown, each of its type.

    Args:
        kind: a dataclass; lists of the file become tuples.
        where: file and row, for the message.
        row: the row of the file.
        computed: fields that the caller computes; the row may not hold them.

    Raises:
        DataFileError: the row does not fit; the message names every field that does not.
    """
    fields = {field.name: field for field in dataclasses.fields(kind) if field.name not in computed}
    repair = f"remove it; the fields are {', '.join(fields)}."
    problems = [
        Problem(f"{where}: {name}", value, "no field has this name.", repair)
        for name, value in row.items()
        if name not in fields
    ]
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in row:
            if field.default is dataclasses.MISSING:
                problems.append(Problem(f"{where}: {name}", NOT_SET, "every row needs this field.", "add it."))
            continue
        annotation = str(field.type).removesuffix(" | None")
        try:
            values[name] = _convert(annotation, row[name])
        except (ValueError, InvalidOperation):
            expected = f"expected {_EXPECTED[annotation]}."
            problems.append(Problem(f"{where}: {name}", row[name], expected, "correct the value."))
    if problems:
        raise DataFileError(*problems)
    return kind(**values, **computed)


def _convert(annotation: str, value: object) -> object:
    """Return the value of a field; a bool is not an int here, though it is one in Python.

    Raises:
        ValueError, InvalidOperation: the file holds another type.
    """
    match annotation, value:
        case ("str", str()) | ("bool", bool()):
            return value
        case ("int", int()) if type(value) is int:
            return value
        case ("float", int() | float()) if type(value) is not bool:
            return float(value)
        case ("tuple[str, ...]", list()) if all(isinstance(text, str) for text in value):
            return tuple(value)
        case ("tuple[int, ...]", list()) if all(type(number) is int for number in value):
            return tuple(value)
        case ("Decimal", str()):
            return Decimal(value)
    raise ValueError


def read_rows(kind: type[Record], file: str) -> dict[str, Record]:
    """Return the records of a data file whose tables are named by their ids."""
    return {name: make(kind, f"{file}: {name}", row, id=name) for name, row in read_toml(file).items()}


def find(kind: str, name: str, records: Mapping[str, Record]) -> Record:
    """Return the record of that id.

    Raises:
        NotInCatalogueError: no record of this kind has the id.
    """
    if name not in records:
        raise NotInCatalogueError(kind, name, records)
    return records[name]


def read_toml(file: str) -> dict[str, Any]:
    """Read one data file of the catalogue.

    Raises:
        DataFileError: it is not valid TOML.
    """
    try:
        return tomllib.loads((DATA / file).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise DataFileError(Problem(file, None, f"it is not valid TOML: {error}.", "correct the file.")) from None
