"""From samples to figures: pure.

- ``ttft``: request sent to first token of any channel; ``e2e``: request sent to last token chunk.
- ``tpot`` = (e2e - ttft) / (output tokens - 1), for each request.
- Rates are the tokens of completed requests by the server's ``usage``, over the time of the whole run.

What cannot be measured is absent, never 0.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from smoke.load import Load, Sample


def figures(load: Load, samples: Sequence[Sample], seconds: float, *, simulated: bool) -> dict[str, Any]:
    """The record of a run, fit for a stack's outputs.

    Args:
        load: What was sent.
        samples: One for each request.
        seconds: From the first request to the last answer.
        simulated: Whether the server is a simulated one: then no figure says anything of hardware.
    """
    good = [one for one in samples if not one.failure]
    record: dict[str, Any] = {
        "simulated": simulated,
        "requests": len(samples),
        "completed": len(good),
        "failed": dict(Counter(one.failure for one in samples if one.failure)),
        "concurrency": load.concurrency,
        "seed": load.seed,
        "seconds": round(seconds, 3),
        "notes": _notes(load, samples, good, simulated=simulated),
    }
    if good and seconds > 0:
        record |= {
            "prompt_tokens": sum(one.prompt_tokens for one in good),
            "output_tokens": sum(one.output_tokens for one in good),
            "requests_per_second": round(len(good) / seconds, 3),
            "input_tokens_per_second": round(sum(one.prompt_tokens for one in good) / seconds, 1),
            "output_tokens_per_second": round(sum(one.output_tokens for one in good) / seconds, 1),
            "ttft_ms": _spread([one.ttft * 1000 for one in good]),
            "e2e_ms": _spread([one.e2e * 1000 for one in good]),
        }
    steps = [(one.e2e - one.ttft) / (one.output_tokens - 1) * 1000 for one in good if one.output_tokens > 1]
    if steps:
        record["tpot_ms"] = _spread(steps)
    return record


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0 to 1) of ``values`` lies, interpolated between neighbours.

    Raises:
        ValueError: There are no values.
    """
    if not values:
        raise ValueError("no values, no percentile")
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"p50": round(percentile(values, 0.5), 2), "p99": round(percentile(values, 0.99), 2)}


def _notes(load: Load, samples: Sequence[Sample], good: Sequence[Sample], *, simulated: bool) -> list[str]:
    notes: list[str] = []
    if simulated:
        notes.append("simulated: the server is a simulated one, no figure says anything of hardware")
    if len(samples) < 3 * load.concurrency:
        notes.append(
            f"{len(samples)} requests are fewer than 3 x {load.concurrency} users: no steady state, p99 is the slowest"
        )
    if len(good) < len(samples):
        notes.append(f"{len(samples) - len(good)} of {len(samples)} requests failed and are in no figure but `failed`")
    short = sum(one.output_tokens < load.output_tokens for one in good)
    if short:
        notes.append(f"{short} answers are shorter than the {load.output_tokens} tokens asked for")
    cached = sum(one.cached_tokens for one in good)
    if cached:
        notes.append(f"{cached} prompt tokens came from the prefix cache: prompts were not as unique as meant")
    return notes
