"""Names that resources had before a stack was one component, as the program of that time declared them.

`tests/fixtures/earlier_names.json` holds them for stack files with changes: types of parents, own type and name, as in
a URN.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[2] / "fixtures" / "earlier_names.json"
COMPONENTS = ("bezel:services:VllmService", "bezel:services:LeasedVllmService")
NAME = "vllm"


@dataclass(frozen=True)
class Earlier:
    """A stack of that time: its stack file, the settings that differ from it, and its resources."""

    stack: str
    changes: dict[str, Any]
    resources: list[str]


def earlier_stacks() -> dict[str, Earlier]:
    """Each stack of the table."""
    return {name: Earlier(**parts) for name, parts in json.loads(TABLE.read_text(encoding="utf-8")).items()}


def earlier_urn(urn: str) -> str:
    """The URN that a resource of a stack had; that of anything else is the same."""
    start, separator, rest = urn.partition("::bezel::")
    types, _, name = rest.partition("::")
    first, _, inner = types.partition("$")
    if first not in COMPONENTS or not inner:
        return urn
    return f"{start}{separator}{inner}::{name.removeprefix(f'{NAME}-')}"
