"""Prompts from a file: plain texts, JSON lines, lists of messages, conversations as ShareGPT has them, and tables.

Owns where each form has its entries. Leaves out what an entry means (`bezel_bench.prompts.entries`) and how it is sent
(`bezel_bench.prompts.prompts`).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bezel_base.errors import Problem, UserError
from bezel_base.text.counting import format_count
from bezel_bench.prompts.entries import KEYS, Entry, entry_of
from bezel_bench.prompts.tables import is_binary, is_table, parquet_rows, text_rows

MOST_TOKENS = 10_000_000
_JSON = {".json", ".jsonl", ".ndjson"}
_ARRAY = re.compile(r'\s*\[[\s\[]*["{]')
_SHOWN_PROBLEMS = 5


def read_entries(file: Path, column: str = "", length_column: str = "") -> list[Entry]:
    """The entries of a file, in their order; what is empty is left out.

    Args:
        file: The file.
        column: The column of a table, or the key of JSON, with the prompts; "" is that of the form.
        length_column: The one with the length of each response; "" for none.

    Returns:
        The entries; those without messages have no question.

    Raises:
        UserError: It cannot be read, holds none, or an entry is of no known form; the error has the first problems.
    """
    entries: list[Entry] = []
    problems: list[Problem] = []
    repair = f"name {'another' if column or length_column else 'one by --column'}, or correct the entry."
    for place, item in _rows(file, column, length_column):
        try:
            entry = entry_of(_field(item, column) if column else item)
            if entry is not None and length_column:
                entry = replace(entry, output_tokens=_length(_field(item, length_column), length_column))
        except ValueError as error:
            problems.append(Problem(f"{file}, {place}", None, f"{error}.", repair))
            continue
        if entry is not None:
            entries.append(entry)
    if problems:
        count = format_count(len(problems), "entries")
        raise UserError(*problems[:_SHOWN_PROBLEMS], title=f"{count} of {file.name} cannot be sent")
    if not any(entry.messages for entry in entries):
        consequence = f"the file holds no text to send{', as no turn is of a user' if entries else ''}."
        raise UserError(Problem(str(file), None, consequence, "write one text per line."))
    return entries


def _rows(file: Path, column: str, length_column: str) -> Iterator[tuple[str, Any]]:
    """Items with their places; a table's row without a named column is the value of its only one."""
    if not is_table(file):
        yield from _items(file, read_text(file, str(file)))
        return
    if is_binary(file):
        rows = parquet_rows(file, [column] if column else KEYS, length_column)
    else:
        rows = text_rows(file, read_text(file, str(file)))
    for place, row in rows:
        names = [name for name in row if name != length_column]
        if column or any(name in row for name in KEYS):
            yield place, row
        elif len(names) == 1:
            yield place, {"prompt": row[names[0]], **row}
        else:
            consequence = f"it has the columns {', '.join(row)}, and none is `prompt`, `messages` or `conversations`."
            raise UserError(Problem(str(file), None, consequence, "name one by --column."))


def _field(item: Any, name: str) -> Any:
    if not isinstance(item, dict) or name not in item:
        there = f"it has {', '.join(item)}" if isinstance(item, dict) and item else "expected an object with it"
        raise ValueError(f"there is no `{name}`: {there}")
    return {name: item[name]} if name in KEYS else item[name]


def _length(value: Any, name: str) -> int:
    try:
        length = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        length = 0.0
    if not 1 <= length <= MOST_TOKENS or length % 1:
        raise ValueError(f"expected a number of tokens above 0 in `{name}`, got {value!r:.40}")
    return int(length)


def read_text(file: Path, key: str) -> str:
    """The text of a file.

    Raises:
        UserError: It cannot be read.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        value = None if key == str(file) else str(file)
        consequence = f"the texts of the prompts cannot be read ({error})."
        raise UserError(Problem(key, value, consequence, "name a file of UTF-8 text.")) from None


def _items(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Items with their places: of a JSON document, else one a line, of which each is JSON in a file of that name."""
    try:
        document = json.loads(text) if text.lstrip()[:1] in {"[", "{"} else None
    except (ValueError, RecursionError) as error:
        document = None
        # A text may begin with a bracket too: "[INST] Why?".
        if _ARRAY.match(text) and not _json_values(text.strip().split("\n")[0]):
            consequence = f"it begins as a JSON array and is none: {error}."
            raise UserError(Problem(str(file), None, consequence, "repair it, or write one entry a line.")) from None
    first = document[0] if isinstance(document, list) and document else document
    if isinstance(document, dict) or (isinstance(first, dict) and first.keys() >= {"role", "content"}):
        yield "line 1", document  # an object, or the messages of one conversation
        return
    if document is not None:
        yield from ((f"entry {number}", item) for number, item in enumerate(document, 1))
        return
    # `splitlines` would end a line within a text, at a sign such as U+2028.
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped:
            continue
        parsed = _json_values(stripped) if stripped[0] in {'"', "{", "["} else []
        if not parsed and file.suffix.lower() in _JSON:
            repair = "write one JSON value a line, or name the file as one of text."
            raise UserError(Problem(f"{file}, line {number}", None, f"it is not JSON: {stripped:.40}.", repair))
        yield f"line {number}", parsed[0] if parsed else stripped


def _json_values(text: str) -> list[Any]:
    """The value of a text that is JSON, in a list; [] of another."""
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        return []
