"""Single requests of a run that lists them (`--save-detailed`, `--output-details`), and figures recounted from them."""

import bisect
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bezel_bench.audit.figure import LARGEST, why_no_figure
from bezel_bench.audit.spread import Spread

LISTED = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "errors")
"""Lists of a run, with a value for each request, that are read."""
_NUMBERS = frozenset({int, float})
COMPLETED, PROMPT_TOTAL, OUTPUT_TOTAL = "completed", "prompt_tokens", "generated_tokens"


@dataclass(frozen=True)
class SingleRequests:
    """What the requests of one run give.

    Attributes:
        recounted: Totals and mean latencies in seconds, by name.
        peak: Most requests under way at once; None without their starts.
        lengths: Spread of the responses' tokens; None where they are not listed.
        latency: Spread of e2e in seconds of the requests that succeeded, as listed itself; None where it is not.
    """

    recounted: Mapping[str, float]
    peak: int | None
    lengths: Spread | None
    latency: Spread | None = None


def why_no_list(values: Any) -> str | None:
    """Return why a value is no list of times or counts, or of lists of them; None where it is one."""
    if not isinstance(values, list):
        return why_no_figure(values) or f"expected a list, got {values}"
    for value in values:
        for one in value if isinstance(value, list) else (value,):
            if type(one) not in _NUMBERS or not 0 <= one <= LARGEST:
                return f"one of its values: {why_no_figure(one) or 'a number as a text'}"
    return None


def single_requests(run: Mapping[str, Any]) -> SingleRequests | None:
    """Return the single requests of a run; None where it lists none, or lists of different lengths."""
    latency = _latency(run)
    ttfts, gaps = _times(run.get("ttfts")), run.get("itls")
    if not ttfts or not isinstance(gaps, list) or len(gaps) != len(ttfts):
        return SingleRequests({"e2e": latency.mean}, None, None, latency) if latency and latency.mean else None
    spans = [sum(each) for each in gaps if isinstance(each, list)]
    if len(spans) != len(ttfts):
        return None
    errors = run.get("errors")
    failed = [bool(error) for error in errors] if isinstance(errors, list) else [False] * len(ttfts)
    outputs, prompts = _times(run.get("output_lens")), _times(run.get("input_lens"))
    good = [index for index in range(len(ttfts)) if index < len(failed) and not failed[index]]
    recounted: dict[str, float] = {}
    if good and isinstance(errors, list):
        recounted[COMPLETED] = float(len(good))
    if good:
        recounted["ttft"] = statistics.fmean(ttfts[index] for index in good)
        listed = latency.mean if latency else None
        recounted["e2e"] = listed or statistics.fmean(ttfts[index] + spans[index] for index in good)
    if outputs and len(outputs) == len(ttfts) and good:
        recounted[OUTPUT_TOTAL] = float(sum(outputs[index] for index in good))
        several = [index for index in good if outputs[index] > 1]
        if several:
            recounted["tpot"] = statistics.fmean(spans[index] / (outputs[index] - 1) for index in several)
    if prompts and len(prompts) == len(ttfts) and good:
        recounted[PROMPT_TOTAL] = float(sum(prompts[index] for index in good))
    lengths = None
    if outputs and len(outputs) == len(ttfts) and good:
        lengths = _spread([outputs[index] for index in good])
    return SingleRequests(recounted, _peak(_times(run.get("start_times")), ttfts, spans), lengths, latency)


def _spread(values: Sequence[float]) -> Spread:
    return Spread(
        mean=statistics.fmean(values), deviation=statistics.pstdev(values), least=min(values), most=max(values)
    )


def _latency(run: Mapping[str, Any]) -> Spread | None:
    """Return the spread of the listed latencies, which vLLM writes without --save-detailed too.

    Of failed requests the list holds no latency of a response; without the list of errors nothing shows which failed.
    """
    latencies, errors = _times(run.get("latencies")), run.get("errors")
    if not latencies:
        return None
    if isinstance(errors, list) and len(errors) == len(latencies):
        latencies = [each for each, error in zip(latencies, errors, strict=True) if not error]
    elif len(latencies) != run.get("completed"):
        return None
    return _spread(latencies) if latencies else None


def _times(values: Any) -> list[float]:
    """Return a list of numbers; empty where it is none."""
    if not isinstance(values, list) or not _NUMBERS.issuperset(map(type, values)):
        return []
    return [float(one) for one in values]


def _peak(starts: Sequence[float], ttfts: Sequence[float], spans: Sequence[float]) -> int | None:
    """Return the most requests under way at once, by their starts and ends."""
    if not starts or len(starts) != len(ttfts):
        return None
    ends = sorted(start + ttft + span for start, ttft, span in zip(starts, ttfts, spans, strict=True))
    begun = sorted(starts)
    return max(index + 1 - bisect.bisect_right(ends, start) for index, start in enumerate(begun))
