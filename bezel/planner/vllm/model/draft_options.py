"""Speculative decoding beside options outside of its own configuration.

Owns what vLLM 0.32.0 refuses in config/vllm.py and config/speculative.py, each tried on the real classes. Leaves the
keys of `speculative-config` beside each other to bezel.planner.vllm.device.draft_relations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option
from bezel.planner.vllm.speculation_checks import DRAFTLESS, EXCLUDING_RELEASES, Speculation
from bezel_catalog.option_values import human_int
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem

_CONFIG = "speculative-config"


def check_draft_options(values: Mapping[str, Any], release: str) -> Iterator[Problem]:
    """Refuse drafting beside options that exclude it, and options that need it without it.

    Args:
        values: of the options, by option name.
        release: of vLLM.
    """
    chosen = Speculation.of(values)
    metrics = "per-request-spec-decode-metrics"
    if values.get(metrics) not in (None, "none") and not chosen.is_on:
        yield _refusal(metrics, values[metrics], "tokens are not drafted", "remove it.")
    if not chosen.is_on:
        return
    config = values.get(_CONFIG)
    config = config if isinstance(config, dict) else {}
    if values.get("kv-sharing-fast-prefill") is True and chosen.method not in DRAFTLESS:
        cause = "an assistant drafts from the hidden states of all tokens, which fast prefill leaves out"
        yield _refusal("kv-sharing-fast-prefill", True, cause, "remove it, or the draft model.")
    yield from _watermark(values, config, chosen.method)
    yield from _keys(values, config, chosen.method)
    pads = config.get("disable_padded_drafter_batch") is not True
    if not pads and values.get("async-scheduling") is True and release in EXCLUDING_RELEASES:
        cause = "async-scheduling needs padded batches of drafts"
        yield _refusal(f"{_CONFIG}.disable_padded_drafter_batch", True, cause, "remove one of them.")


def _refusal(option: str, value: object, cause: str, repair: str) -> Problem:
    return of_option(option, value, f"{cause}; {EXITS}", repair)


def _watermark(values: Mapping[str, Any], config: Mapping[str, Any], method: str | None) -> Iterator[Problem]:
    watermark = values.get("watermark-config")
    if not isinstance(watermark, dict):
        return
    target_only = watermark.get("allow_target_only_watermarking") is True
    cause = ""
    if config.get("draft_sample_method", "greedy") != "probabilistic":
        cause = "drafted tokens must be sampled (draft_sample_method: probabilistic)"
    elif config.get("rejection_sample_method", "standard") != "standard":
        cause = "rejection_sample_method must be standard"
    elif method in DRAFTLESS:
        cause = "drafts must be those of a model"
    elif not target_only and watermark.get("algorithm", "gumbel") != "dual_key_gumbel":
        cause = "of the algorithms only dual_key_gumbel marks drafted tokens"
    if cause:
        yield _refusal("watermark-config", "with drafted tokens", cause, "remove it, or the drafting.")


def _keys(values: Mapping[str, Any], config: Mapping[str, Any], method: str | None) -> Iterator[Problem]:
    length, longest = human_int(config.get("max_model_len")), integer(values, "max-model-len")
    if length and longest and length > longest and method not in DRAFTLESS:
        cause = f"it is above max-model-len={longest}"
        yield _refusal(f"{_CONFIG}.max_model_len", length, cause, f"set it to {longest} or less, or remove it.")
    if config.get("tensor_parallel_size") is not None:
        cause = "its name is draft_tensor_parallel_size"
        yield _refusal(f"{_CONFIG}.tensor_parallel_size", config["tensor_parallel_size"], cause, "remove it.")
    if config.get("enable_adaptive_verification") is True and values.get("enable-lora") is True:
        cause = "it cannot be combined with enable-lora"
        yield _refusal(f"{_CONFIG}.enable_adaptive_verification", True, cause, "remove one of them.")
