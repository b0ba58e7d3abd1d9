"""Flags of a gcloud command, taken from a request's body; what no flag takes is left over. Pure.

Owns quoting: of gcloud's own lists (`gcloud topic escaping`) and of the shell.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

_DELIMITERS = ",@;|~#%"


class Flags:
    """Flags that are collected while parts of a body are taken."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._rest: Any = deepcopy(dict(body))
        self._flags: list[str] = []

    def take(self, *path: str | int) -> Any:
        """Remove a part of the body; None where it has none."""
        *above, last = path
        inside = self._rest
        for key in above:
            inside = _item(inside, key)
        value = _item(inside, last)
        if value is not None:
            del inside[last]
        return value

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
        return tuple(_paths(self._rest, ""))


def list_value(items: Iterable[str]) -> str:
    """A list of a flag: with another delimiter where an item has a comma."""
    texts = [str(item) for item in items]
    delimiter = next((mark for mark in _DELIMITERS if not any(mark in text for text in texts)), ",")
    joined = delimiter.join(texts)
    return joined if delimiter == "," else f"^{delimiter}^{joined}"


def pairs(values: Mapping[str, Any]) -> str:
    """A list of KEY=VALUE of a flag."""
    return list_value(f"{key}={value}" for key, value in values.items())


def _item(inside: Any, key: str | int) -> Any:
    if isinstance(inside, Mapping):
        return inside.get(key)
    if isinstance(inside, list) and isinstance(key, int) and key < len(inside):
        return inside[key]
    return None


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _paths(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _paths(item, f"{path}[{number}]")
    else:
        yield path
