"""Text of `catalog.toml`: a row is written as a table of its own; everything else in the file stays as it is.

A row's files are JSON in texts of several lines, so that a difference shows the fields that differ, and so that `null`,
which TOML lacks, stays what it is to the model's library.
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any

from bezel_base.errors import Problem, UserError
from bezel_catalog.loader import DataFileError
from bezel_catalog.project_models.reading import FILE, read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel_catalog.project_models.row import ModelRow

_HEAD = """\
# Models of this project, beside those of Bezel's catalogue: `bezel:model: ID` in a stack file names one.
# `bezel catalog add-model` writes a row from the model's own files; plans are made from it, without the network.
"""
_TABLE = re.compile(r"\s*\[\s*model\s*\.\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<bare>[\w-]+))\s*\]\s*(?:#.*)?")
_JSON_FIELDS = ("config", "generation", "processor")
_FENCE = "'''"
_LONGEST_LINE = 100


def with_row(text: str, row: ModelRow) -> str:
    """The file's text with a row, in place of an earlier one of the same id or at the end.

    Args:
        text: The file's text; "" for none.
        row: The row.

    Raises:
        DataFileError: The text is not that of such a file.
        UserError: The row cannot be written without changing anything else.
    """
    before = read_rows(text)
    lines = (text or _HEAD).splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    begin, end = _place(lines, row.id) if row.id in before else (len(lines), len(lines))
    gap = ["\n"] if begin == len(lines) and lines and lines[-1].strip() else []
    table = _table(row)
    after = "\n" if end < len(lines) else ""
    changed = "".join([*lines[:begin], *gap, table, after, *lines[end:]])
    try:
        is_meant = read_rows(changed) == {**before, row.id: row}
    except DataFileError:
        is_meant = False
    if not is_meant:
        consequence = "the row cannot be replaced without changing anything else in the file; nothing was written."
        raise UserError(Problem(f"{FILE}: {row.id}", None, consequence, "remove the row by hand, then add it again."))
    return changed


def json_text(content: Mapping[str, Any]) -> str:
    """JSON of one field a line, lists of plain values on one line where they fit."""
    return _layout(content, "")


def _place(lines: list[str], name: str) -> tuple[int, int]:
    """First line of a row's table, and the one behind its end, without blank and comment lines before the next."""
    begin, end, inside = len(lines), len(lines), False
    for number, line in enumerate(lines):
        if line.count(_FENCE) % 2:
            inside = not inside
            continue
        table = None if inside else _TABLE.fullmatch(line.rstrip("\n"))
        if table is None:
            continue
        if (table["quoted"] or table["bare"]) == name:
            begin = number
        elif begin < number:
            end = number
            break
    while end > begin and end < len(lines) and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return begin, end


def _table(row: ModelRow) -> str:
    lines = [f"[model.{row.id}]"]
    for field in dataclasses.fields(row):
        value = getattr(row, field.name)
        if field.name == "id" or value == field.default:
            continue
        if field.name in _JSON_FIELDS:
            lines.append(f"{field.name} = {_FENCE}\n{value}{_FENCE}")
        elif isinstance(value, bool):
            lines.append(f"{field.name} = {str(value).lower()}")
        elif isinstance(value, int):
            lines.append(f"{field.name} = {value:_}")
        else:
            lines.append(f"{field.name} = {json.dumps(value, ensure_ascii=True)}")
    return "\n".join(lines) + "\n"


def _layout(value: Any, indent: str) -> str:
    plain = json.dumps(value, ensure_ascii=True).replace("'", "\\u0027")
    is_short = len(plain) + len(indent) <= _LONGEST_LINE
    if not isinstance(value, dict | list) or not value or (indent and is_short and not _holds_maps(value)):
        return plain
    inner = indent + " "
    if isinstance(value, list):
        if not any(isinstance(item, dict | list) for item in value):
            return _wrap(value, indent)
        items = [_layout(item, inner) for item in value]
        return "[\n" + ",\n".join(f"{inner}{item}" for item in items) + f"\n{indent}]"
    items = [f"{json.dumps(str(key))}: {_layout(item, inner)}".replace("'", "\\u0027") for key, item in value.items()]
    return "{\n" + ",\n".join(f"{inner}{item}" for item in items) + f"\n{indent}}}"


def _holds_maps(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _wrap(items: list[Any], indent: str) -> str:
    """A long list of plain values, several on a line."""
    lines, line = [], ""
    for item in items:
        word = json.dumps(item, ensure_ascii=True).replace("'", "\\u0027")
        if line and len(line) + len(word) + len(indent) + 3 > _LONGEST_LINE:
            lines.append(line)
            line = ""
        line += f"{', ' if line else ''}{word}"
    lines.append(line)
    return "[\n" + ",\n".join(f"{indent} {text}" for text in lines) + f"\n{indent}]"
