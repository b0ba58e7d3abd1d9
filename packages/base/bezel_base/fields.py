"""Fields taken out of a document; what no reader takes is left over, by its path. Pure."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Fields:
    """A document whose parts are taken one by one."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._rest: Any = deepcopy(dict(document))

    def take(self, *path: str | int) -> Any:
        """Remove a part; None where there is none."""
        *above, last = path
        inside = self._rest
        for key in above:
            inside = _item(inside, key)
        value = _item(inside, last)
        if value is not None:
            del inside[last]
        return value

    def text(self, *path: str | int) -> str:
        """Remove a part that is text or a number; "" where there is none."""
        value = self.take(*path)
        return "" if value is None or isinstance(value, dict | list) else _text(value)

    def number(self, *path: str | int) -> int | None:
        """Remove a whole number; None where there is none."""
        text = self.text(*path)
        return int(text) if text.isdecimal() else None

    def maps(self, *path: str | int) -> list[dict[str, Any]]:
        """Remove a list of maps; what is no map in it is left out."""
        value = self.take(*path)
        return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []

    def texts(self, *path: str | int) -> list[str]:
        """Remove a list of texts."""
        value = self.take(*path)
        return [_text(each) for each in value] if isinstance(value, list) else []

    def mapping(self, *path: str | int) -> dict[str, str]:
        """Remove a map of texts."""
        value = self.take(*path)
        return {str(key): _text(item) for key, item in value.items()} if isinstance(value, dict) else {}

    def leftovers(self) -> Iterator[tuple[str, Any]]:
        """Path and value of each leaf that was not taken."""
        return _leaves(self._rest, "")


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _item(inside: Any, key: str | int) -> Any:
    if isinstance(inside, dict):
        return inside.get(key)
    if isinstance(inside, list) and isinstance(key, int) and key < len(inside):
        return inside[key]
    return None


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}[{number}]")
    else:
        yield path, value
