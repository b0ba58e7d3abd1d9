"""Figures of a comparison of variants: the differences, each with its interval."""

from collections.abc import Sequence

from bezel_bench.report.charts.forest import Change, Forest
from bezel_bench.report.figure import Figure, Table
from bezel_bench.report.format import UNKNOWN
from bezel_bench.result.document import Finding, Result

_NAMES = ("difference", "no_difference_shown")


def ab_figures(results: Sequence[Result]) -> list[Figure]:
    """Return one figure of each comparison."""
    compared = [result for result in results if any(finding.name in _NAMES for finding in result.findings)]
    return [
        _figure(result, f"differences{f'-{place}' if len(compared) > 1 else ''}", several=len(compared) > 1)
        for place, result in enumerate(compared, 1)
    ]


def _figure(result: Result, name: str, *, several: bool) -> Figure:
    changes = [_change(finding) for finding in result.findings if finding.name in _NAMES]
    title = "Differences between variants" + (f": {result.manifest.title}" if several else "")
    first = next(str(finding.numbers.get("compared_with")) for finding in result.findings if finding.name in _NAMES)
    description = (
        f"Change of each figure against {first}, with its interval; "
        "an interval that holds 0 shows no difference (outlined), but does not exclude one."
    )
    picture = Forest(title, description, changes)
    rows = [[change.label, _format_share(change.change), f"{_format_share(change.low)} to {_format_share(change.high)}",
             "yes" if change.is_shown else "no"] for change in changes]  # fmt: skip
    table = Table(title, ["figure", "change", "interval", "difference shown"], rows)
    return Figure(name, title, result.nature, [description], picture, table)


def _change(finding: Finding) -> Change:
    numbers = finding.numbers
    label = f"{numbers.get('figure', '')}, {numbers.get('arm', '')}"
    return Change(label, _share(numbers.get("change")), _share(numbers.get("low")), _share(numbers.get("high")),
                  finding.text)  # fmt: skip


def _share(value: float | str | None) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _format_share(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share * 100:+.1f} %"
