"""Drafting beside options outside of its own configuration, in the words of vLLM 0.32.0.

Source: vllm 0.32.0, config/speculative.py and config/vllm.py; each was tried on the real classes. Leaves keys beside
each other to `drafts.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.configuration.failures import refusal
from bezel_simulated_vllm.release import is_at_least

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

_OF_TEXT = ("ngram", "ngram_gpu", "suffix")


def check_draft_options(options: argparse.Namespace) -> None:
    """Check the drafting of a command line.

    Raises:
        StartError: with the text of the first validator that refuses.
    """
    config: dict[str, Any] = dict(options.speculative_config or {})
    short_forms = {
        "method": options.spec_method,
        "model": options.spec_model,
        "num_speculative_tokens": options.spec_tokens,
    }
    config |= {key: value for key, value in short_forms.items() if value is not None}
    if not config.get("method") and not config.get("model"):
        if options.per_request_spec_decode_metrics != "none":
            raise refusal("draft-metrics")
        return
    _check_keys(config, options)
    if options.kv_sharing_fast_prefill and config.get("method") not in _OF_TEXT:
        raise refusal("fast-prefill")
    padded = not config.get("disable_padded_drafter_batch")
    if options.async_scheduling and not padded and not is_at_least(options.release, "0.33.0"):
        raise refusal("padded-batch")
    _check_watermark(options.watermark_config, config)
    if options.enable_lora and config.get("enable_adaptive_verification"):
        raise refusal("adaptive-lora")


def _check_keys(config: Mapping[str, Any], options: argparse.Namespace) -> None:
    method = config.get("method")
    length, target = config.get("max_model_len"), options.max_model_len
    if method not in _OF_TEXT and length and target and length > target:
        raise refusal("draft-length", length=length, target=target)
    if config.get("tensor_parallel_size") is not None:
        raise refusal("draft-tensor-parallel")


def _check_watermark(watermark: object, config: Mapping[str, Any]) -> None:
    if not isinstance(watermark, dict):
        return
    algorithm = watermark.get("algorithm", "gumbel")
    if config.get("draft_sample_method", "greedy") != "probabilistic":
        raise refusal("watermark-greedy")
    if config.get("rejection_sample_method", "standard") != "standard":
        raise refusal("watermark-rejection")
    if config.get("method") in _OF_TEXT:
        raise refusal("watermark-method")
    if not watermark.get("allow_target_only_watermarking") and algorithm != "dual_key_gumbel":
        raise refusal("watermark-algorithm", algorithm=algorithm)
