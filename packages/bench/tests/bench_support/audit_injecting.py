"""Clean material for injections: a sweep's table, a claim among others, a case of files."""

from __future__ import annotations

import random
from typing import Any

from bench_support.audit_clean import Case, File, axes, grid_rows, label_of, sweep
from bench_support.audit_documents import claims
from bench_support.audit_server import Served, some_server

Dice = random.Random
OUTPUT = 128
Way = tuple[Case, str] | None
"""What an injection gives: the case and its item that has the fault, or None."""


def grid(dice: Dice, served: Served, **options: Any) -> tuple[str, list[dict[str, str]], list[int], list[int]]:
    """The table of a clean sweep: its name, its rows, its contexts, its numbers of users."""
    contexts, users = axes(dice)
    loads = sweep(served, contexts, users, OUTPUT, dice)
    return f"{label_of(served, dice)}.csv", grid_rows(loads, dice, **options), contexts, users


def case_of(served: Served, *files: File) -> Case:
    """Files of one case."""
    return Case("injected", list(files), served)


def claim(dice: Dice, served: Served, **fields: Any) -> tuple[Case, str]:
    """One more claim among clean ones."""
    document = claims(served, some_server(dice), dice)
    document["claims"].insert(dice.randint(0, len(document["claims"])), {"id": "injected", **fields})
    return case_of(served, File("claims.json", document=document)), "injected"


def around(served: Served) -> dict[str, Any]:
    """What a claim says of the server."""
    return {"hardware": served.hardware.removeprefix("nvidia-"), "model": served.model.id, "chips": served.chips}


def ok_rows(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows with a figure."""
    return [row for row in rows if row["status"] == "ok" and float(row.get("value") or 0) > 0]


def digits_of(row: dict[str, str], value: float) -> str:
    """A value with as many digits as the row has."""
    return f"{value:.{len(row['value'].partition('.')[2])}f}"
