"""Figures of a cell except its latencies: rates per second, costs, shares, lengths and counts.

Each public function computes the figure of its name, as bezel_bench.metrics.definitions documents it.

Waiting is not work: a request counts at its completion, a prompt at its first token, entirely at that instant; only
generated tokens, which come one after the other, are spread over their time. If requests were spread from their sending
on, one that waits in a queue would count before any work is done for it, and an overloaded server would seem to do more
than it does.
"""

import functools
import itertools
from collections.abc import Callable

import numpy as np

from bezel_bench.metrics import statistics
from bezel_bench.metrics.metric_inputs import (
    NO_GENERATION,
    NO_SUCCESS,
    NO_TEXT,
    MeasuredFigure,
    MetricInputs,
    NotMeasurableError,
    meets,
)
from bezel_bench.metrics.steady import Steady
from bezel_bench.result.columns import Columns, Floats
from bezel_bench.result.document import Reading


def _rate(
    amounts: Callable[[Columns], Floats], span: tuple[str, str], inputs: MetricInputs, *, at_end: bool = True
) -> MeasuredFigure:
    """Compute amounts per second.

    Args:
        amounts: Amount of each request.
        span: Fields of the begin and end of a request's time in which the amount arises.
        inputs: The inputs.
        at_end: Whether amounts count at the end of that time; else evenly over it.
    """
    rows, steady = inputs.good, inputs.steady
    if len(inputs.counted_rows) == 0 or steady.seconds <= 0:
        raise NotMeasurableError(NO_SUCCESS)
    quantities = amounts(rows)
    # The first token of a response without a text was not observed: it counts when it ends.
    texts = rows["first"] > 0
    ends = rows["done"] if span[1] == "done" else np.where(texts, rows[span[1]], rows["last"])
    begins = np.where(texts, rows[span[0]], ends if inputs.open_loop else rows["sent"])

    def between(start: int, end: int, *, whole: bool) -> float:
        part = Steady(start, end, "", cut=steady.cut)
        return float((quantities * part.share(ends if whole else begins, ends)).sum()) / part.seconds

    value = between(steady.begins, steady.ends, whole=at_end)
    edges = np.linspace(steady.begins, steady.ends, statistics.SECTIONS + 1).astype(np.int64).tolist()
    enough = len(inputs.counted_rows) >= 2 * statistics.SECTIONS
    # Users of a closed loop come in step: an edge between two rounds would add an artificial variance. As a constant
    # number of them is under way, spreading their requests over their time counts nothing twice.
    whole = at_end and inputs.open_loop
    sections = [between(*edge, whole=whole) for edge in itertools.pairwise(edges)] if enough and steady.cut else []
    return MeasuredFigure(value, len(inputs.counted_rows), statistics.around(value, sections) if sections else None)


def requests_per_second(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the rate of requests that succeeded."""
    return _rate(lambda rows: np.ones(len(rows)), ("sent", "done"), inputs)


def offered_requests_per_second(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the rate that an open loop planned, from its first to its last request."""
    due = inputs.columns["planned"]
    if not inputs.open_loop:
        raise NotMeasurableError("users of a closed loop offer as much as is completed")
    if len(due) < 2 or due.max() == due.min():
        raise NotMeasurableError("fewer than two instants were planned")
    return MeasuredFigure((len(due) - 1) / (int(np.ptp(due)) / 1e9), len(due))


def output_tokens_per_second(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the rate of generated tokens."""
    if not inputs.generates:
        raise NotMeasurableError(NO_GENERATION)
    return _rate(lambda rows: rows["output_tokens"].astype(np.float64), ("first", "last"), inputs, at_end=False)


def prompt_tokens_per_second(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the rate of prompt tokens sent, cached ones included."""
    return _rate(lambda rows: rows["prompt_tokens"].astype(np.float64), ("sent", "first"), inputs)


def input_tokens_per_second(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the rate of computed prompt tokens, without cached ones; not measurable if these are unknown."""
    cached = cached_share(inputs)
    sent = prompt_tokens_per_second(inputs)
    if (inputs.good["cached_tokens"] < 0).any():
        return MeasuredFigure(sent.value * (1 - cached.value), sent.n)
    return _rate(
        lambda rows: (rows["prompt_tokens"] - rows["cached_tokens"]).astype(np.float64), ("sent", "first"), inputs
    )


def in_flight(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the average number of requests under way."""
    steady, sent = inputs.steady, inputs.columns["sent"]
    done, sent = inputs.columns["done"][sent > 0], sent[sent > 0]
    if steady.seconds <= 0 or len(sent) == 0:
        raise NotMeasurableError("no request was sent")
    inside = np.minimum(done, steady.ends) - np.maximum(sent, steady.begins)
    return MeasuredFigure(float(inside.clip(0).sum() / 1e9 / steady.seconds), len(sent))


def goodput(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the rate of requests that met every SLO."""
    if not inputs.slos:
        raise NotMeasurableError("no SLO was given")
    if len(inputs.good) == 0:
        return MeasuredFigure(0.0, 0)
    met = meets(inputs.good, inputs.slos, open_loop=inputs.open_loop)
    return _rate(lambda _: met.astype(np.float64), ("sent", "done"), inputs)


def goodput_share(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the share of all ended requests that met every SLO; a failed one met none."""
    if not inputs.slos:
        raise NotMeasurableError("no SLO was given")
    ended = inputs.columns.where(inputs.steady.counts(inputs.columns) & ~inputs.columns.cancellations())
    if len(ended) == 0:
        raise NotMeasurableError("no request ended in the part that counts")
    met = meets(ended, inputs.slos, open_loop=inputs.open_loop) & (ended.failure == 0)
    return MeasuredFigure(float(met.mean()), len(ended))


def _cost(rate: Callable[[MetricInputs], MeasuredFigure], inputs: MetricInputs) -> MeasuredFigure:
    """Compute the cost of a million tokens at a rate, if they bear the whole price."""
    if inputs.usd_per_hour is None:
        raise NotMeasurableError("no price is known")
    tokens = rate(inputs)
    if not tokens.value:
        raise NotMeasurableError("no tokens were served")
    per_million = inputs.usd_per_hour / 3600 * 1_000_000
    # The figures cannot be negative, but an interval around them can.
    low, high = tokens.interval or (0.0, 0.0)
    interval = (per_million / high, per_million / low) if low > 0 else None
    return MeasuredFigure(per_million / tokens.value, tokens.n, interval)


cost_per_million_output_tokens = functools.partial(_cost, output_tokens_per_second)
cost_per_million_input_tokens = functools.partial(_cost, input_tokens_per_second)


def success_share(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the share of the sent requests that succeeded."""
    sent = len(inputs.columns) - int(inputs.columns.cancellations().sum())
    if sent == 0:
        raise NotMeasurableError("no request was sent to its end")
    return MeasuredFigure(len(inputs.good) / sent, sent)


def cached_share(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the share of the prompt tokens served from the prefix cache: by usage, else by the counters."""
    rows = inputs.good
    if len(rows) == 0:
        raise NotMeasurableError(NO_SUCCESS)
    if (rows["cached_tokens"] >= 0).all():
        return MeasuredFigure(float(rows["cached_tokens"].sum() / rows["prompt_tokens"].sum()), len(rows))
    gained = inputs.gained
    if gained and gained.cached_tokens is not None and gained.prompt_tokens:
        return MeasuredFigure(gained.cached_tokens / gained.prompt_tokens, len(rows))
    raise NotMeasurableError(
        "neither usage (vLLM: --enable-prompt-tokens-details) nor a valid counter reports cached tokens"
    )


def tokens_per_chunk(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the tokens per chunk."""
    rows = inputs.counted_rows
    if not (chunks := int(rows.chunk_counts.sum())):
        why = NO_TEXT if inputs.generates else NO_GENERATION
        raise NotMeasurableError(NO_SUCCESS if len(rows) == 0 else why)
    texts = rows.chunk_counts > 0
    return MeasuredFigure(float(rows["output_tokens"][texts].sum()) / chunks, int(texts.sum()))


def _mean_length(name: str, inputs: MetricInputs) -> MeasuredFigure:
    """Compute the mean of a count of tokens."""
    lengths = inputs.counted_rows[name]
    if name == "output_tokens" and not inputs.generates:
        raise NotMeasurableError(NO_GENERATION)
    if len(lengths) == 0 or (lengths < 0).any():
        raise NotMeasurableError(NO_SUCCESS if len(lengths) == 0 else "usage does not report it")
    return MeasuredFigure(float(lengths.mean()), len(lengths))


prompt_tokens_mean = functools.partial(_mean_length, "prompt_tokens")
output_tokens_mean = functools.partial(_mean_length, "output_tokens")


def reasoning_share(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the share of the output that was reasoning."""
    rows = inputs.counted_rows
    if len(rows) == 0:
        raise NotMeasurableError(NO_SUCCESS)
    if (rows["reasoning_tokens"] < 0).any():
        raise NotMeasurableError("usage does not report reasoning tokens")
    return MeasuredFigure(float(rows["reasoning_tokens"].sum() / rows["output_tokens"].sum()), len(rows))


def acceptance_rate(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the share of the drafted tokens that the model accepted."""
    gained, accepted = _accepted_drafts(inputs)
    if not gained.draft_tokens:
        raise NotMeasurableError(_why_no_drafts(gained))
    return MeasuredFigure(accepted / gained.draft_tokens, gained.drafts or 0)


def acceptance_length(inputs: MetricInputs) -> MeasuredFigure:
    """Compute the tokens that a step with a draft yields."""
    gained, accepted = _accepted_drafts(inputs)
    if not gained.drafts:
        raise NotMeasurableError(_why_no_drafts(gained))
    return MeasuredFigure(1 + accepted / gained.drafts, gained.drafts)


def _accepted_drafts(inputs: MetricInputs) -> tuple[Reading, int]:
    """Return the increase of the server's counters over the load, and the accepted draft tokens among them."""
    if inputs.gained is None:
        raise NotMeasurableError("the server's counters are not known")
    if inputs.gained.accepted_tokens is None:
        raise NotMeasurableError(_why_no_drafts(inputs.gained))
    return inputs.gained, inputs.gained.accepted_tokens


def _why_no_drafts(gained: Reading) -> str:
    return "the server makes no drafts" if gained.drafts is None else "no draft was made"
