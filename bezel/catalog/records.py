"""How the data files of the catalogue are read: whole, typed, and loudly wrong when a field is missing or unknown.

Owns the folder of the data files and the error of a look-up that finds nothing. Leaves the meaning of the rows to
the modules beside it. Nothing here falls back to another row: what is not in a file is not known.
"""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA = Path(__file__).parent / "data"


class NotInCatalogueError(KeyError):
    """A look-up of something that the catalogue does not hold.

    Attributes:
        kind: what was looked for, e.g. "accelerator".
        name: the name that was asked for.
        known: every name that would have been found, sorted.
        closest: the known name that resembles the asked one most, if any does.
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
    """The known name most like `name`, or None when none reaches the likeness (0 nothing in common, 1 the same)."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=likeness)
    return found[0] if found else None


def region_names() -> frozenset[str]:
    """Every region of Google Cloud."""
    return frozenset(read_toml("regions.toml")["names"])


def read_toml(file: str) -> dict[str, Any]:
    """Reads one data file of the catalogue."""
    return tomllib.loads((DATA / file).read_text(encoding="utf-8"))
