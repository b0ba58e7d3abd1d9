"""Words of the audit: numbers with their noun, groups of equals, and the names that other tools use (names.toml)."""

import functools
import tomllib
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def count(number: int, noun: str) -> str:
    """A number with its noun, e.g. "1 user", "2,048 users"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def group_by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items by their key, both in their order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


@functools.cache
def names(kind: str) -> dict[str, Any]:
    """Return one table of names.toml, e.g. "columns"."""
    tables: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))
    return tables[kind]
