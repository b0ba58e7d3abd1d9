"""The tokens of one step against the longest image, audio clip or video that the model takes in one piece.

Owns vLLM's encoder budget (v1/core/encoder_cache_manager.py: compute_mm_encoder_budget). Leaves comparisons of options
with each other to bezel.planner.vllm.argument_conflicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import of_option
from bezel_catalog.option_values import as_int
from bezel_catalog.vllm.multimodal import multimodal_tokens
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem
    from bezel_catalog import Model

_BATCHED, _LIMITS = "max-num-batched-tokens", "limit-mm-per-prompt"
_UNLIMITED = 999  # vLLM's own number for a modality without a limit


def check_longest_item(values: Mapping[str, Any], model: Model, *, tpu: bool) -> Iterator[Problem]:
    """Refuse a step that is too short for the longest multimodal item, where vLLM does not split items.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        tpu: whether tpu-inference serves it.
    """
    batched, items = integer(values, _BATCHED), item_tokens(values, model)
    if not takes_items_whole(values, model, tpu=tpu) or batched is None or batched <= 0 or not items:
        return
    kind, longest = max(items.items(), key=lambda item: item[1])
    if longest <= batched:
        return
    consequence = f"one {kind} of {model.id} takes {longest} tokens and must fit one step; vLLM exits while it starts."
    repair = f"set it to {longest} or more"
    if shorter := sorted(tokens for tokens in items.values() if tokens <= batched):
        none = ", ".join(f"{name}: 0" for name, tokens in items.items() if tokens > batched)
        repair += f", or add `{none}` to {_LIMITS}: {shorter[-1]} tokens are then enough"
    yield of_option(_BATCHED, batched, consequence, f"{repair}.")


def takes_items_whole(values: Mapping[str, Any], model: Model, *, tpu: bool) -> bool:
    """Whether a multimodal item is read in one piece.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        tpu: whether tpu-inference serves it, which leaves the splitting to the option; on a GPU vLLM turns it off for
            a model that takes items and whose images attend in both directions.
    """
    forced = model.architecture.bidirectional_images and not tpu and bool(item_tokens(values, model))
    return values.get("disable-chunked-mm-input") is True or forced


def item_tokens(values: Mapping[str, Any], model: Model) -> dict[str, int]:
    """Return the tokens of the longest item of each modality that the arguments leave to the model; {} for text only.

    Also {} where the tokens of an item are not recorded: those of other families depend on their processors.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
    """
    if not model.is_gemma4:
        return {}
    modalities, table = model.architecture.modalities, multimodal_tokens()
    tokens = {}
    if "image" in modalities:  # a video is a row of images
        tokens["image"] = _image_tokens(values)
        tokens["video"] = table.tokens_per_frame * min(table.video_frames, _frames(values))
    if "audio" in modalities:
        tokens["audio"] = table.audio_tokens
    if values.get("enable-mm-embeds") is True:
        return tokens  # embeddings from outside need the place of an item even where the limit is 0
    return {kind: count for kind, count in tokens.items() if _limit(values, kind) > 0}


def media_are_off(values: Mapping[str, Any]) -> bool:
    """Whether the arguments leave no modality to any model.

    Args:
        values: of the options, by option name.
    """
    return all(_limit(values, kind) == 0 for kind in ("image", "video", "audio"))


def _limit(values: Mapping[str, Any], kind: str) -> int:
    if values.get("language-model-only") is True:
        return 0
    limit = _limits(values).get(kind)
    count = as_int(limit.get("count") if isinstance(limit, dict) else limit)
    return _UNLIMITED if count is None else count


def _frames(values: Mapping[str, Any]) -> int:
    limit = _limits(values).get("video")
    frames = as_int(limit.get("num_frames")) if isinstance(limit, dict) else None
    return frames if frames and frames > 0 else multimodal_tokens().video_frames


def _limits(values: Mapping[str, Any]) -> Mapping[str, Any]:
    limits = values.get(_LIMITS)
    return limits if isinstance(limits, dict) else {}


def _image_tokens(values: Mapping[str, Any]) -> int:
    table, options = multimodal_tokens(), values.get("mm-processor-kwargs")
    options = options if isinstance(options, dict) else {}
    chosen = options.get("max_soft_tokens")
    if chosen is None and isinstance(inner := options.get("images_kwargs"), dict):
        chosen = inner.get("max_soft_tokens")
    return chosen if isinstance(chosen, int) and chosen in table.image_token_choices else table.image_tokens
