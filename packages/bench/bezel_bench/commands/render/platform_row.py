"""Rows of text with what a server's platform measured over loads. Pure."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from bezel_base.text.counting import format_count
from bezel_bench.result.document import Cell
from bezel_bench.result.platform_series import PlatformSeries

_NAMES = {"gpu": "GPU", "gpu_memory": "GPU memory", "instances": "instances"}


def platform_rows(cells: Sequence[Cell]) -> Iterator[str]:
    """A row for each cell that has samples, and one for all the others of which the platform was asked."""
    asked = [cell for cell in cells if cell.platform_series]
    unsampled: list[Cell] = []
    for cell in asked:
        if any(series.values for series in cell.platform_series):
            yield f"{cell.id}: {platform_row(cell.platform_series)}"
        else:
            unsampled.append(cell)
    if unsampled:
        more = f" and {format_count(len(unsampled) - 1, 'more loads')}" if unsampled[1:] else ""
        yield f"{unsampled[0].id}{more}: {platform_row(unsampled[0].platform_series)}"


def platform_row(series: Sequence[PlatformSeries]) -> str:
    """The mean of each series with its least and its most, and what is unknown with each reason once."""
    values = [_value_text(one) for one in series if one.values]
    unknown: dict[str, list[str]] = {}
    for one in series:
        if not one.values:
            unknown.setdefault(one.why, []).append(_NAMES[one.of])
    reasons = [f"{' and '.join(names)} unknown ({why})" for why, names in unknown.items()]
    return f"by {series[0].source}: {'; '.join([*values, *reasons])}"


def _value_text(series: PlatformSeries) -> str:
    form = "{:.4g}" if series.of == "instances" else "{:.0%}"
    low, high, mean = (form.format(value) for value in (min(series.values), max(series.values), fmean(series.values)))
    between = f"{low} to {high}, " if low != high else ""
    return f"{_NAMES[series.of]} {mean} ({between}{format_count(len(series.values), 'samples')})"
