"""Flags of a gcloud command, taken from a request's body; what no flag takes is left over. Pure.

Owns quoting: of gcloud's own lists (`gcloud topic escaping`) and of the shell.
"""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from bezel_base.fields import Fields

_DELIMITERS = ",@;|~#%"


class Flags(Fields):
    """Flags that are collected while parts of a body are taken."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(body)
        self._flags: list[str] = []

    def add(self, flag: str, value: object = None) -> None:
        """Add a flag; one without a value stands alone."""
        self._flags.append(flag if value is None else f"{flag}={value}")

    def move(self, flag: str, *path: str | int) -> None:
        """Add a flag with a part of the body, where it has it."""
        if (value := self.take(*path)) is not None:
            self.add(flag, value)

    def switch(self, flag: str, *path: str | int, default: bool | None = None) -> None:
        """Add `--flag` or `--no-flag`, where the body or the default says which."""
        value = self.take(*path)
        value = default if value is None else value
        if value is not None:
            self.add(f"--{flag}" if value else f"--no-{flag}")

    def command(self, *parts: str) -> str:
        """The command, a line for each flag."""
        return " \\\n  ".join([shlex.join(parts), *map(shlex.quote, self._flags)])

    def leftover_paths(self) -> tuple[str, ...]:
        """Paths of what no flag took."""
        return tuple(path for path, _ in self.leftovers())


def list_value(items: Iterable[str]) -> str:
    """A list of a flag: with another delimiter where an item has a comma."""
    texts = [str(item) for item in items]
    delimiter = next((mark for mark in _DELIMITERS if not any(mark in text for text in texts)), ",")
    joined = delimiter.join(texts)
    return joined if delimiter == "," else f"^{delimiter}^{joined}"


def pairs(values: Mapping[str, Any]) -> str:
    """A list of KEY=VALUE of a flag."""
    return list_value(f"{key}={value}" for key, value in values.items())
