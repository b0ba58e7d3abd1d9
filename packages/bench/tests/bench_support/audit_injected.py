"""Faults put into clean results at random: each of the eighteen, in the formats where it can be seen.

An injection changes what its fault changes and nothing else. It returns None where the clean case that was drawn has no
room for it (no heavy cell, no long context, nothing that would change), so that what is counted is there to be found.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_support import (
    audit_injected_clients,
    audit_injected_loads,
    audit_injected_origins,
    audit_injected_words,
)

if TYPE_CHECKING:
    from bench_support.audit_clean import Case

INJECTIONS = (
    audit_injected_origins.WAYS | audit_injected_loads.WAYS | audit_injected_words.WAYS | audit_injected_clients.WAYS
)


@dataclass
class Injected:
    """A case with one fault, and the item that has it."""

    fault: int
    how: str
    case: Case
    item: str


def inject(fault: int, seed: int) -> Injected:
    """A case with that fault; the same seed gives the same."""
    dice = random.Random(1000 * seed + fault)  # noqa: S311 - simulated
    ways = INJECTIONS[fault]
    way = ways[seed % len(ways)]
    while True:
        case_and_item = way(dice)
        if case_and_item:
            case, item = case_and_item
            return Injected(fault, way.__name__.removeprefix("_"), case, item)
