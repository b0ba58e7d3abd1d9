"""Single requests of a run that lists them (`--save-detailed`, `--output-details`), and figures recounted from them."""

import bisect
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bezel.bench.audit.spread import Spread

COMPLETED, PROMPT_TOTAL, OUTPUT_TOTAL = "completed", "prompt_tokens", "generated_tokens"


@dataclass(frozen=True)
class SingleRequests:
    """What the requests of one run give.

    Attributes:
        recounted: Totals and mean latencies in seconds, by name.
        peak: Most requests under way at once; None without their starts.
        lengths: Spread of the responses' tokens; None where they are not listed.
    """

    recounted: Mapping[str, float]
    peak: int | None
    lengths: Spread | None


def single_requests(run: Mapping[str, Any]) -> SingleRequests | None:
    """Return the single requests of a run; None where it lists none, or lists of different lengths."""
    ttfts, gaps = _times(run.get("ttfts")), run.get("itls")
    if not ttfts or not isinstance(gaps, list) or len(gaps) != len(ttfts):
        return None
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
        recounted["e2e"] = statistics.fmean(ttfts[index] + spans[index] for index in good)
    if outputs and len(outputs) == len(ttfts) and good:
        recounted[OUTPUT_TOTAL] = float(sum(outputs[index] for index in good))
        several = [index for index in good if outputs[index] > 1]
        if several:
            recounted["tpot"] = statistics.fmean(spans[index] / (outputs[index] - 1) for index in several)
    if prompts and len(prompts) == len(ttfts) and good:
        recounted[PROMPT_TOTAL] = float(sum(prompts[index] for index in good))
    lengths = None
    if outputs and len(outputs) == len(ttfts) and good:
        values = [outputs[index] for index in good]
        lengths = Spread(
            mean=statistics.fmean(values), deviation=statistics.pstdev(values), least=min(values), most=max(values)
        )
    return SingleRequests(recounted, _peak(_times(run.get("start_times")), ttfts, spans), lengths)


def _times(values: Any) -> list[float]:
    """Return a list of numbers; empty where it is none."""
    if not isinstance(values, list) or any(isinstance(one, bool) or not isinstance(one, int | float) for one in values):
        return []
    return [float(one) for one in values]


def _peak(starts: Sequence[float], ttfts: Sequence[float], spans: Sequence[float]) -> int | None:
    """Return the most requests under way at once, by their starts and ends."""
    if not starts or len(starts) != len(ttfts):
        return None
    ends = sorted(start + ttft + span for start, ttft, span in zip(starts, ttfts, spans, strict=True))
    begun = sorted(starts)
    return max(index + 1 - bisect.bisect_right(ends, start) for index, start in enumerate(begun))
