"""Keys of speculative-config against each other, the method and the number of GPUs.

Source: vllm 0.32.0, config/speculative.py (__post_init__, _verify_args). Leaves method, draft model and number of
tokens to bezel.planner.vllm.speculation_checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option
from bezel.planner.vllm.speculation_checks import DRAFTLESS, Speculation
from bezel_catalog.option_values import as_float, as_int
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem

_OPTION = "speculative-config"
_RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
_OF_FIRST_RUNNER = ("suffix", "medusa", "mlp_speculator", "custom_class")
_RATES, _LENGTH = "synthetic_acceptance_rates", "synthetic_acceptance_length"


def check_draft_relations(values: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Problem]:
    """Refuse keys of speculative-config that vLLM refuses beside the others.

    Args:
        values: of the options, by option name.
        environment: variables of the container.
    """
    config = values.get(_OPTION)
    if not isinstance(config, dict) or not config:
        return
    chosen = Speculation.of(values)
    if chosen.method in ("ngram", "ngram_gpu"):
        least, most = (as_int(config.get(f"prompt_lookup_{end}")) for end in ("min", "max"))
        if least is not None and most is not None and least > most:
            consequence = f"it is above prompt_lookup_max={most}: {EXITS}"
            yield of_option(f"{_OPTION}.prompt_lookup_min", least, consequence, f"set it to {most} or less.")
    if config.get("use_heterogeneous_vocab") is True and chosen.method != "draft_model":
        consequence = f"only a draft model of its own has another vocabulary (method: draft_model): {EXITS}"
        yield of_option(f"{_OPTION}.use_heterogeneous_vocab", True, consequence, "remove it.")
    yield from _runner(values, config, chosen.method or "", environment)
    yield from _synthetic(config, chosen.tokens)
    size, devices = as_int(config.get("draft_tensor_parallel_size")), integer(values, "tensor-parallel-size", 1)
    if size is not None and chosen.method not in DRAFTLESS and size not in (1, devices):
        consequence = f"a draft model is on one GPU or on all that share the model ({devices}): {EXITS}"
        yield of_option(f"{_OPTION}.draft_tensor_parallel_size", size, consequence, "remove it.")


def _runner(
    values: Mapping[str, Any], config: Mapping[str, Any], method: str, environment: Mapping[str, str]
) -> Iterator[Problem]:
    """What the first and the second model runner do not have, and what adaptive verification needs."""
    chosen = environment.get(_RUNNER)
    if chosen == "1" and method in _OF_FIRST_RUNNER:
        consequence = f"the model runner of {_RUNNER}=1 has no drafts of this method: {EXITS}"
        yield of_option(f"{_OPTION}.method", method, consequence, "remove the variable from bezel:variables.")
    if config.get("enable_adaptive_verification") is not True:
        return
    name, compilation = f"{_OPTION}.enable_adaptive_verification", values.get("compilation-config")
    graphs = compilation.get("cudagraph_mode", "") if isinstance(compilation, dict) else ""
    if chosen == "0" or method in _OF_FIRST_RUNNER:
        yield of_option(name, True, f"the first model runner does not have it: {EXITS}", "remove it.")
    elif values.get("enable-lora") is True:
        yield of_option(name, True, f"it does not work with adapters (enable-lora): {EXITS}", "remove it.")
    elif values.get("enforce-eager") is True or str(graphs).upper() in ("NONE", "PIECEWISE"):
        yield of_option(name, True, f"it needs full CUDA graphs, which are off: {EXITS}", "remove it.")


def _synthetic(config: Mapping[str, Any], tokens: int | None) -> Iterator[Problem]:
    """Made-up acceptance: by rates or by a length, each within its bounds."""
    rates, length = config.get(_RATES), config.get(_LENGTH)
    where = f"{_OPTION}.{_LENGTH if rates is None else _RATES}"
    if config.get("rejection_sample_method") != "synthetic":
        if rates is not None or length is not None:
            consequence = f"it belongs to rejection_sample_method: synthetic: {EXITS}"
            yield of_option(where, length if rates is None else rates, consequence, "remove it.")
        return
    if (rates is None) == (length is None):
        consequence = f"synthetic needs one of {_RATES} and {_LENGTH}: {EXITS}"
        yield of_option(f"{_OPTION}.rejection_sample_method", "synthetic", consequence, "remove it.")
        return
    if tokens is None:
        return
    number = as_float(length)
    if number is not None and not 1 <= number <= tokens + 1:
        yield of_option(where, length, f"it is not in 1 to {tokens + 1}: {EXITS}", f"write 1 to {tokens + 1}.")
    if isinstance(rates, list):
        shares = [as_float(rate) for rate in rates]
        falls = all(share is not None and 0 <= share <= 1 for share in shares) and shares == sorted(
            shares, key=lambda share: -(share or 0)
        )
        if len(rates) != tokens or not falls:
            consequence = f"vLLM needs {tokens} shares of 0 to 1, none above the one before it: {EXITS}"
            yield of_option(where, rates, consequence, f"write {tokens} falling shares.")
