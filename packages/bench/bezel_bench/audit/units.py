"""Parser of other tools' names: units of rates, and columns of latencies."""

import re
from dataclasses import dataclass

from bezel_bench.audit.table import INPUT, OUTPUT, REQUESTS, TOKENS, TOTAL, median_of
from bezel_bench.audit.words import names

_NAME = (
    r"ttft|tpot|itl|e2el?(?:_latency)?|end_to_end_latency|latency|request_latency|time_to_first_token|"
    r"time_per_output_token|inter_token_latency"
)
_LATENCY = re.compile(
    rf"^(?:(mean|avg|average|median|p50)[_ ])?({_NAME})(?:[_ ](mean|avg|median|p50))?(?:[_ ](ms|s|seconds|sec))?$"
)
_TIME = re.compile(
    rf"^(mean|avg|average|median|std|stddev|min|max|p\d+(?:\.\d+)?)_({_NAME}|client_queue_time)"
    r"(?:_(ms|s|seconds|sec|us))?$"
)
_FACTORS = {"ms": 1e-3, "us": 1e-6, None: None}
_LATENCY_NAMES = names("latencies")


def rate_of(unit: str, direction: str = "") -> str | None:
    """Return the rate that a unit means, e.g. "generated tok/s"; None where it is not a rate per second.

    Args:
        unit: as written.
        direction: the counted tokens, as another field states them.
    """
    low = f"{direction} {unit}".lower().replace("_", " ")
    if re.search(r"\b(req(?:uest)?s?\b.*(?:/|per )\s*s|rps\b|qps\b)", low):
        return REQUESTS
    if not re.search(r"\b(tok(?:en)?s?\b.*(?:/|per )\s*s|tps\b|t/s)", low):
        return None
    is_input = bool(re.search(r"\b(input|prompt|prefill|computed)\b", low))
    is_output = bool(re.search(r"\b(output|generated|generation|decode|completion)\b", low))
    if (is_input and is_output) or re.search(r"\b(total|combined|overall)\b", low):
        return TOTAL
    return INPUT if is_input else OUTPUT if is_output else TOKENS


def latency_of(column: str) -> tuple[str, float] | None:
    """Return the mean or median latency that a column holds, and the factor to seconds; None where it is none.

    Without a unit in the name the column is read as seconds.
    """
    match = _LATENCY.match(column.strip().lower())
    if match is None:
        return None
    name = str(_LATENCY_NAMES.get(match[2], match[2]))
    middle = {match[1], match[3]} & {"median", "p50"}
    return median_of(name) if middle else name, 1e-3 if match[4] == "ms" else 1.0


@dataclass(frozen=True, slots=True)
class TimeField:
    """What a field like "p99_ttft_ms" holds: the latency, the statistic, and the factor to seconds (None: no unit)."""

    latency: str
    statistic: str
    factor: float | None


def time_of(field: str) -> TimeField | None:
    """Return the statistic of a latency that a field of a summary holds; None where it is none."""
    match = _TIME.match(field.strip().lower())
    if match is None:
        return None
    statistic = {"avg": "mean", "average": "mean", "stddev": "std"}.get(match[1], match[1])
    return TimeField(str(_LATENCY_NAMES.get(match[2], match[2])), statistic, _FACTORS.get(match[3], 1.0))
