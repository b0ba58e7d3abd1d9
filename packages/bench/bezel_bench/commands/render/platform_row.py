"""Row of text with what a server's platform measured over a load. Pure."""

from collections.abc import Sequence
from statistics import fmean

from bezel_bench.result.platform_series import PlatformSeries
from bezel_bench.sweep.wording import format_count

_NAMES = {"gpu": "GPU", "gpu_memory": "GPU memory", "instances": "instances"}


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
