"""Variables and options of vLLM that are dangerous to set, with what each would mean."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from bezel.catalog.records import make, read_toml


@dataclass(frozen=True, slots=True)
class Risk:
    """One dangerous setting: of the kind "variable", or "option" without dashes in front.

    `when`: "on" where only switching it on is dangerous, "set" where any value but an empty one is.
    """

    name: str
    kind: str
    when: str
    consequence: str


@functools.cache
def vllm_risks() -> dict[str, Risk]:
    """All of them, by name."""
    return {
        name: make(Risk, f"vllm/risks.toml: {name}", {**row, "kind": kind}, name=name)
        for kind, rows in read_toml("vllm/risks.toml").items()
        for name, row in rows.items()
    }
