"""Figures that are shares, lengths and counts: cached tokens, successes, gains of drafts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.bench.metrics.metric_inputs import NO_TEXT, NONE_GOOD, absent
from bezel.bench.result.document import Metric

if TYPE_CHECKING:
    from bezel.bench.metrics.metric_inputs import MetricInputs
    from bezel.bench.result.document import Reading


def success_share(facts: MetricInputs) -> Metric:
    """Compute the share of the sent requests that succeeded."""
    if len(facts.columns) == 0:
        return absent("share", "nothing was sent")
    return Metric(value=len(facts.good) / len(facts.columns), unit="share", n=len(facts.columns))


def cached_share(facts: MetricInputs) -> Metric:
    """Compute the share of the prompt tokens served from the prefix cache: by usage, else by the counters."""
    rows = facts.good
    if len(rows) == 0:
        return absent("share", NONE_GOOD)
    if (rows["cached_tokens"] >= 0).all():
        return Metric(value=float(rows["cached_tokens"].sum() / rows["prompt_tokens"].sum()), unit="share", n=len(rows))
    gained = facts.gained
    if gained and gained.cached_tokens is not None and gained.prompt_tokens:
        return Metric(value=gained.cached_tokens / gained.prompt_tokens, unit="share", n=len(rows))
    return absent(
        "share",
        "usage does not tell cached tokens (vLLM: --enable-prompt-tokens-details), and no trustworthy counter does",
    )


def tokens_per_chunk(facts: MetricInputs) -> Metric:
    """Compute the tokens per chunk."""
    rows = facts.counted.where(facts.counted.chunk_counts > 0)
    chunks = int(rows.chunk_counts.sum())
    if chunks == 0:
        return absent("tokens", NONE_GOOD if len(facts.counted) == 0 else NO_TEXT)
    return Metric(value=float(rows["output_tokens"].sum()) / chunks, unit="tokens", n=len(rows))


def mean_length(name: str, facts: MetricInputs) -> Metric:
    """Compute the mean of a count of tokens."""
    lengths = facts.counted[name]
    if len(lengths) == 0 or (lengths < 0).any():
        return absent("tokens", NONE_GOOD if len(lengths) == 0 else "usage does not tell it")
    return Metric(value=float(lengths.mean()), unit="tokens", n=len(lengths))


def reasoning_share(facts: MetricInputs) -> Metric:
    """Compute the share of the output that was reasoning."""
    rows = facts.counted
    if len(rows) == 0:
        return absent("share", NONE_GOOD)
    if (rows["reasoning_tokens"] < 0).any():
        return absent("share", "usage does not tell reasoning tokens")
    return Metric(value=float(rows["reasoning_tokens"].sum() / rows["output_tokens"].sum()), unit="share", n=len(rows))


def acceptance_rate(facts: MetricInputs) -> Metric:
    """Compute the share of the drafted tokens that the model accepted."""
    gained = facts.gained
    if gained is None or not gained.draft_tokens or gained.accepted_tokens is None:
        return absent("share", _why_no_drafts(gained))
    return Metric(value=gained.accepted_tokens / gained.draft_tokens, unit="share", n=gained.drafts or 0)


def acceptance_length(facts: MetricInputs) -> Metric:
    """Compute the tokens that a step with a draft yields."""
    gained = facts.gained
    if gained is None or not gained.drafts or gained.accepted_tokens is None:
        return absent("tokens", _why_no_drafts(gained))
    return Metric(value=1 + gained.accepted_tokens / gained.drafts, unit="tokens", n=gained.drafts)


def _why_no_drafts(gained: Reading | None) -> str:
    if gained is None:
        return "the server's counters are not known"
    return "the server makes no drafts" if gained.drafts is None else "no draft was made"
