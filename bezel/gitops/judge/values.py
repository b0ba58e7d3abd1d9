"""Values of files that judge, by their keys: limits, prices, settings, versions of dependencies. Pure.

JSON, TOML, YAML and CSV become keys with whole texts, which are compared; they are shortened where a change is shown
as old and new. Everything else, and what cannot be read, has none.
"""

import csv
import io
import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from bezel.planner.base.stack_file import StackFileError, read_stack_file

NONE = "(none)"
_LONGEST_FILE = 4_000_000
_LONGEST = 80
_BEFORE = 20  # equal characters that are shown in front of what differs
_NAMES = ("id", "name")
_AMOUNTS = ("usd_per_unit",)


def values_of(path: str, content: bytes) -> dict[str, str] | None:
    """Key -> value as text; None for a file whose values cannot be read.

    Args:
        path: Its ending names the format.
        content: The file's content.
    """
    read = _READERS.get(path.rpartition("/")[2]) or _READERS.get(path.rpartition(".")[2])
    if read is None or len(content) > _LONGEST_FILE:
        return None
    try:
        return dict(read(content.decode()))
    except (ValueError, TypeError, KeyError, RecursionError, yaml.YAMLError, csv.Error, StackFileError):
        return None


def differing(old: Mapping[str, str], new: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Key, old and new value of each value that differs; a missing one is `(none)`."""
    keys = [key for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key)]
    return [(key, old.get(key, NONE), new.get(key, NONE)) for key in keys]


def flat(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Key and text of each value in a structure, e.g. `monthly-ceiling.limits.prod` and `1600`."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from flat(item, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for name, item in zip(_names_of(value), value, strict=True):
            yield from flat(item, f"{key}.{name}")
    else:
        yield key, _text(value)


def _names_of(items: list[Any]) -> list[str]:
    """Names of a list's items: their own, if each has one that no other has, else their numbers."""
    for field in _NAMES:
        names = [str(item.get(field)) for item in items if isinstance(item, dict) and field in item]
        if len(names) == len(items) == len({*names}):
            return names
    return [str(number) for number in range(len(items))]


def shown_values(old: str, new: str) -> tuple[str, str]:
    """Two values that differ, as texts of one line and of bounded length that differ."""
    sides = [" ".join(text.split()) for text in (old, new)]
    if sides[0] == sides[1]:  # in blanks only
        sides = [json.dumps(text, ensure_ascii=False) for text in (old, new)]
    if _cut(sides[0]) == _cut(sides[1]):
        pairs = enumerate(zip(*sides, strict=False))
        first = next((place for place, (one, other) in pairs if one != other), min(map(len, sides)))
        start = max(first - _BEFORE, 0)
        sides = [f"…{side[start:]}" for side in sides]
    return _cut(sides[0]), _cut(sides[1])


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _json(text: str) -> Iterator[tuple[str, str]]:
    return flat(json.loads(text))


def _toml(text: str) -> Iterator[tuple[str, str]]:
    return flat(tomllib.loads(text))


def _catalogue(text: str) -> Iterator[tuple[str, str]]:
    """Values of a project's own models; of their files, which are JSON in texts, each value too."""
    for key, value in _toml(text):
        content = json.loads(value) if value.startswith("{") else None
        yield from [(key, value)] if content is None else flat(content, key)


def _yaml(text: str) -> Iterator[tuple[str, str]]:
    return flat(read_stack_file(text, "file")[0])


def _csv(text: str) -> Iterator[tuple[str, str]]:
    """A row of prices by what it prices; the price first, as it is what a reader looks for."""
    for row in csv.DictReader(io.StringIO(text)):
        names = [str(row.get(name) or "") for name in ("service", "item", "region", "model", "unit")]
        key = " ".join(filter(None, names))
        for name in dict.fromkeys([*(name for name in _AMOUNTS if name in row), *row]):
            if name not in ("service", "item", "region", "model", "unit"):
                yield f"{key} {name}", _text(row[name])


_READERS = {
    "catalog.toml": _catalogue,
    "json": _json,
    "toml": _toml,
    "lock": _toml,
    "yaml": _yaml,
    "yml": _yaml,
    "csv": _csv,
}
