"""The encoder budget of a multimodal model: vLLM compares the longest item with the tokens of a step.

Source: vllm 0.32.0, v1/core/encoder_cache_manager.py (compute_mm_encoder_budget), multimodal/encoder_budget.py,
model_executor/models/gemma4_mm.py and platforms/cuda.py. Leaves the keys of config.json to `checkpoint.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.configuration.failures import refusal

if TYPE_CHECKING:
    import argparse

    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint

_SOFT_TOKENS = (70, 140, 280, 560, 1120)
_FRAMES, _FRAME_TOKENS = 32, 70 + 2 + 6


def longest_item(options: argparse.Namespace, model: Checkpoint) -> int:
    """Return the tokens of the longest item of the modalities that are on; 0 where none is.

    Args:
        options: the parsed command line.
        model: the checkpoint.
    """
    if not model.multimodal:
        return 0
    limits = {
        kind: limit if isinstance(limit, dict) else {"count": limit}
        for kind, limit in (options.limit_mm_per_prompt or {}).items()
    }
    frames = limits.get("video", {}).get("num_frames") or _FRAMES
    sizes = {"image": _image_tokens(options, model), "video": min(_FRAMES, frames) * _FRAME_TOKENS}
    if model.audio_tokens:
        sizes["audio"] = model.audio_tokens
    counts = {kind: 0 if options.language_model_only else limits.get(kind, {}).get("count", 999) for kind in sizes}
    # Embeddings of a modality whose tower is off take the place of an item too.
    return max((size for kind, size in sizes.items() if counts[kind] > 0 or options.enable_mm_embeds), default=0)


def splits_items(options: argparse.Namespace, model: Checkpoint, *, tpu: bool) -> bool:
    """Return whether an item may be divided between steps; on a GPU never where images attend in both directions."""
    return not (options.disable_chunked_mm_input or (model.bidirectional_images and not tpu))


def check_longest_item(options: argparse.Namespace, model: Checkpoint, batched: int, *, tpu: bool) -> None:
    """Check that a step holds the longest item where items are not divided.

    Raises:
        StartError: it does not, or Mamba layers' states are to end with blocks all the same.
    """
    longest = longest_item(options, model)
    items_are_whole = options.disable_chunked_mm_input or (longest and not splits_items(options, model, tpu=tpu))
    if options.mamba_cache_mode == "align" and items_are_whole:
        raise refusal("mamba-align")
    if longest > batched and not splits_items(options, model, tpu=tpu):
        raise refusal("batch-below-item", longest=longest, batched=batched)


def _image_tokens(options: argparse.Namespace, model: Checkpoint) -> int:
    kwargs: dict[str, Any] = options.mm_processor_kwargs or {}
    chosen = kwargs.get("max_soft_tokens")
    if chosen is None and isinstance(images := kwargs.get("images_kwargs"), dict):
        chosen = images.get("max_soft_tokens")
    return chosen if isinstance(chosen, int) and chosen in _SOFT_TOKENS else model.image_tokens
