"""The comparison's JSON file: what was compared, and one line for each measurement, written as it is made."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bezel_base.atomic_write import write_whole

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Results:
    """All measurements of one machine.

    Attributes:
        machine: The processor, its cores and the kernel.
        measured: Day of the last measurement.
        commands: Command line of each client, by its name.
        rows: Measurements, in the order in which they were made: `client`, `load`, `round` and figures.
    """

    machine: str
    measured: str = ""
    commands: dict[str, str] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def has(self, client: str, load: str, round_: int) -> bool:
        """Whether a load was measured with a client in a round."""
        return any((row["client"], row["load"], row["round"]) == (client, load, round_) for row in self.rows)


def read_results(path: Path) -> Results:
    """Read the file."""
    return Results(**{key: value for key, value in json.loads(path.read_text("utf-8")).items() if key != "document"})


def write_results(path: Path, results: Results) -> None:
    """Write the file whole: a kill loses the measurement under way."""
    head = {
        "document": "benchmarks",
        "machine": results.machine,
        "measured": results.measured,
        "commands": results.commands,
    }
    rows = ",\n".join(json.dumps(row) for row in results.rows)
    text = json.dumps(head, indent=1).removesuffix("\n}")
    write_whole(path, f'{text},\n "rows": [\n{rows}\n]}}\n'.encode())


def round_figures(row: dict[str, Any]) -> dict[str, Any]:
    """The row with five significant digits of each fraction."""
    return {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in row.items()}
