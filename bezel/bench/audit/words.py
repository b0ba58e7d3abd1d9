"""Words of the audit: numbers with their noun, and the names that other tools' files use (names.toml)."""

import functools
import tomllib
from pathlib import Path
from typing import Any


def count(number: int, noun: str) -> str:
    """E.g. "1 user", "2,048 users"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@functools.cache
def names(kind: str) -> dict[str, Any]:
    """Return one table of names.toml, e.g. "columns"."""
    tables: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))
    return tables[kind]
