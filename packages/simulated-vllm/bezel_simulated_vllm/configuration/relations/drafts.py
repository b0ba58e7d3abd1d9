"""Keys of the speculative configuration against each other, as its class compares them.

Source: vllm 0.32.0, config/speculative.py. Leaves the method and the draft model to `speculation.py`.
"""

from __future__ import annotations

import itertools
from typing import Any

from bezel_simulated_vllm.configuration.failures import refusal


def check_drafts(config: dict[str, Any]) -> None:
    """Check a configuration whose keys and types are known.

    Raises:
        StartError: two keys contradict each other, or one does not belong to the method.
    """
    method, least, most = config.get("method"), *(_number(config.get(f"prompt_lookup_{end}")) for end in ("min", "max"))
    for name in ("prompt_lookup_min", "prompt_lookup_max"):
        if isinstance(config.get(name), int) and config[name] < 1:
            raise refusal("lookup-low", field=name)
    if method in {"ngram", "ngram_gpu"} and least and most and least > most:
        raise refusal("lookup-order", least=least, most=most)
    _check_synthetic(config)
    if config.get("use_heterogeneous_vocab") and method != "draft_model":
        raise refusal("other-vocabulary")


def _check_synthetic(config: dict[str, Any]) -> None:
    rates, length = config.get("synthetic_acceptance_rates"), config.get("synthetic_acceptance_length")
    if (rates is not None and not isinstance(rates, list)) or (length is not None and _number(length) is None):
        field = "synthetic_acceptance_rates" if length is None else "synthetic_acceptance_length"
        raise refusal("synthetic-type", field=field)
    if config.get("rejection_sample_method") != "synthetic":
        if rates is not None or length is not None:
            raise refusal("synthetic-only")
        return
    if (rates is None) == (length is None):
        raise refusal("synthetic-one")
    tokens = int(config.get("num_speculative_tokens") or 0)
    if rates is not None:
        _check_rates(rates, tokens)
    elif length is not None and not 1 <= length <= tokens + 1:
        raise refusal("synthetic-length", most=tokens + 1, length=length)


def _check_rates(rates: list[float], tokens: int) -> None:
    if len(rates) != tokens:
        raise refusal("synthetic-rates", text=f"must have length {tokens}", rates=rates)
    if not all(isinstance(rate, int | float) and 0 <= rate <= 1 for rate in rates):
        raise refusal("synthetic-rates", text="entries must be in [0, 1]", rates=rates)
    if any(later > earlier for earlier, later in itertools.pairwise(rates)):
        raise refusal("synthetic-rates", text="must be non-increasing", rates=rates)


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
