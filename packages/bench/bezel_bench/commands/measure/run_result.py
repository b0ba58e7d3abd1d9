"""Result of `bezel bench run`: its cells, with findings over the repeats. Imported after the load."""

from collections.abc import Sequence

from bezel_bench.cell.plan import ServerView
from bezel_bench.commands.measure.target import TargetConnection, renewals
from bezel_bench.metrics.statistics import CONFIDENCE, of_repeats
from bezel_bench.result.document import Cell, Finding, Result

# Figures whose spread over the repeats is reported.
_REPEATED = (
    *("requests_per_second", "output_tokens_per_second", "input_tokens_per_second"),
    *("ttft_p50", "tpot_p50", "e2e_p50"),
)


def run_result(reached: TargetConnection, server: ServerView, cells: list[Cell], notes: Sequence[str]) -> Result:
    """The result of the cells of a run.

    Args:
        reached: The measured server.
        server: Its view, with its manifest.
        cells: The measured repeats.
        notes: Notes on them for the reader.
    """
    return Result(
        kind="run",
        nature="simulated" if reached.simulated else "measured",
        manifest=server.manifest,
        cells=cells,
        findings=_repeats(cells),
        notes=[*notes, *renewals(reached.headers)],
    )


def _repeats(cells: Sequence[Cell]) -> list[Finding]:
    """Findings over the repeats: mean and interval of the main figures, over the cells that are ok."""
    good = [cell for cell in cells if cell.state == "ok"]
    findings = []
    for name in _REPEATED:
        values = [value for cell in good if (value := cell.value(name)) is not None]
        interval = of_repeats(values)
        if interval is None:
            continue
        mean, low, high = sum(values) / len(values), max(0.0, interval[0]), interval[1]
        findings.append(
            Finding(
                name=f"repeats of {name}",
                text=f"{name}: {mean:.4g} {good[0].metrics[name].unit} over {len(values)} repeats, {CONFIDENCE:.0%} "
                f"interval {low:.4g} to {high:.4g}",
                numbers={"mean": mean, "low": low, "high": high, "repeats": len(values)},
                cells=[cell.id for cell in good],
            )
        )
    return findings
