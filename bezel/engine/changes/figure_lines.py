"""Lines of the figures that a stack's outputs record: how the model fits, and the rates that a benchmark measured.

Models that pool have rates of requests and of input tokens in place of output tokens, and encoders have no KV cache.
"""

from collections.abc import Mapping
from typing import Any

_OF_CACHE = ("weights_gib", "kv_cache_gib", "budget_gib", "full_context_sequences", "max_model_len")
_OF_ENCODER = ("weights_gib", "unused_gib", "budget_gib", "full_context_sequences", "max_model_len")


def fit_line(fit: Mapping[str, Any]) -> str | None:
    """How the model fits, by `fit` of a plan among the outputs; None where figures are missing."""
    if all(name in fit for name in _OF_CACHE):
        weights, cache, budget, sequences, length = (fit[name] for name in _OF_CACHE)
        parts = f"{weights} GiB of weights and {cache} GiB for the KV cache"
    elif all(name in fit for name in _OF_ENCODER):
        weights, unused, budget, sequences, length = (fit[name] for name in _OF_ENCODER)
        parts = f"{weights} GiB of weights, no KV cache and {unused} GiB not used"
    else:
        return None
    return f"{parts}, of {budget} GiB: {sequences} sequences of {length} tokens fit"


def is_pooled(figures: Mapping[str, Any]) -> bool:
    """Whether a short benchmark's figures are of a model that pools: of requests without output tokens."""
    return "output_tokens_per_second" not in figures and "requests_per_second" in figures


def rates_of(figures: Mapping[str, Any]) -> tuple[str, ...]:
    """The rates of a short benchmark with their units; () where nothing was measured."""
    names = {"output_tokens_per_second": "output tokens/s"}
    if is_pooled(figures):
        names = {"requests_per_second": "requests/s", "input_tokens_per_second": "input tokens/s"}
    return tuple(f"{figures[name]} {unit}" for name, unit in names.items() if figures.get(name) is not None)


def latency_names(figures: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the latencies that describe a short benchmark: of tokens, or of whole requests without any."""
    return ("e2e_ms",) if is_pooled(figures) else ("ttft_ms", "tpot_ms")
