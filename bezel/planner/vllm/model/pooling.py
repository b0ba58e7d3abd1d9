"""Pooling of a planned model: the options that vLLM needs for it, and the endpoint that its checks ask.

Owns the defaults of a model that pools. Leaves the rules of vLLM to bezel_catalog.architectures.pooling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel_catalog import Model
    from bezel_catalog.architectures.pooling import Pooling


def planned_pooling(model: Model, values: Mapping[str, Any], release: str) -> Pooling | None:
    """How a release pools with a model under these options; None where it generates.

    Args:
        model: the checkpoint; those of the catalogue generate.
        values: values of the options by name.
        release: the release of vLLM, whose registry may not be recorded: then that of the newest recorded one counts.
    """
    if model.files is None:
        return None
    # Late: previews of the catalogue's models need no registry.
    from bezel_catalog.architectures.pooling import read_pooling
    from bezel_catalog.architectures.registry import recorded_releases

    releases = recorded_releases()
    config = values.get("pooler-config")
    return read_pooling(
        model.config,
        release if release in releases else releases[-1],
        has_modules=model.files.pooling_module,
        runner=str(values.get("runner") or "auto"),
        convert=str(values.get("convert") or "auto"),
        task=config.get("task") if isinstance(config, dict) else None,
    )


def does_pool(model: Model) -> bool:
    """Whether vLLM pools with a model by itself, without options, in the newest recorded release."""
    return planned_pooling(model, {}, "") is not None


def pooling_defaults(model: Model, max_model_len: int, batched_tokens: int) -> dict[str, object]:
    """Default options of a model that vLLM pools with by itself; none for one that generates.

    A prompt whose tokens see later ones, or of which a module makes one mean, is computed in one step: the step must
    hold the longest (vLLM 0.32.0, config/model.py, is_chunked_prefill_supported).

    Args:
        model: the checkpoint.
        max_model_len: the default length of the context.
        batched_tokens: the default number of tokens in a step.
    """
    if not does_pool(model):
        return {}
    from bezel_catalog.architectures.layers import EncoderLayers

    is_whole = bool(model.architecture.groups(EncoderLayers)) or bool(model.files and model.files.pooling_module)
    batched = {"max-num-batched-tokens": max(batched_tokens, max_model_len)} if is_whole else {}
    return {"runner": "pooling", **batched}
