"""Kind of each layer where a file does not list them: what transformers' configuration classes fill in.

Source: transformers 5.19.0, `__post_init__` of the classes named beside each rule, the version that vLLM 0.32.0 and
0.33.0 read configurations with; beam: vLLM 0.33.0, `vllm/transformers_utils/configs/beam.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel_catalog.architectures.configuration import Configuration

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"

# One full layer after each so many others; the number is in the field of the second column where the file has it.
_EVERY: dict[str, tuple[int, tuple[str, ...]]] = {
    "afmoe": (4, ("global_attn_every_n_layers",)),
    "cohere2": (4, ("sliding_window_pattern",)),
    "cohere2_moe": (4, ("sliding_window_pattern",)),
    "diffusion_gemma_text": (6, ("sliding_window_pattern",)),
    "embedding_gemma2_text": (6, ("sliding_window_pattern",)),
    "exaone4": (4, ("sliding_window_pattern",)),
    "exaone_moe": (4, ("sliding_window_pattern",)),
    "gemma2": (2, ()),
    "gemma3": (6, ("sliding_window_pattern", "_sliding_window_pattern")),
    "gemma3_text": (6, ("sliding_window_pattern", "_sliding_window_pattern")),
    "gemma3n": (5, ()),
    "gemma3n_text": (5, ()),
    "gemma4": (6, ("sliding_window_pattern",)),
    "gemma4_text": (6, ("sliding_window_pattern",)),
    "gemma4_unified_text": (6, ("sliding_window_pattern",)),
    "gpt_oss": (2, ()),
    "muse_glimmer_text": (4, ()),
    "olmo3": (4, ()),
    "plamo3": (8, ("sliding_window_pattern",)),
    "t5gemma2_text": (6, ("sliding_window_pattern",)),
    "vaultgemma": (2, ()),
}
# One full layer before each so many others.
_FROM_FIRST: dict[str, tuple[int, tuple[str, ...]]] = {
    "cwm": (4, ("sliding_window_pattern",)),
    "granite_swa": (4, ()),
    "granitemoe_swa": (4, ()),
    "modernbert": (3, ("global_attn_every_n_layers",)),
    "modernbert-decoder": (3, ("global_attn_every_n_layers",)),
}
# As before, the others linear.
_LINEAR: dict[str, tuple[int, tuple[str, ...]]] = dict.fromkeys(
    ("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "olmo_hybrid"),
    (4, ("full_attention_interval",)),
)
_LAST_IS_FULL = ("diffusion_gemma_text", "embedding_gemma2_text", "gemma4", "gemma4_text", "gemma4_unified_text")
_ALL_FULL = ("cohere_compass", "laguna", "mellum")
_ALL_SLIDING = ("beam",)
# Windows of classes whose defaults are not recorded.
_WINDOWS = {"beam": 4096}


def layer_types(config: Configuration, count: int) -> list[str]:
    """Kind of each of the layers, empty where the model has one kind only and its class lists none.

    Args:
        config: the language model's part.
        count: number of layers.
    """
    written = config.texts("layer_types")
    if written:
        return written
    kind = config.model_type
    for rules, other in ((_EVERY, SLIDING), (_LINEAR, LINEAR)):
        if kind in rules:
            every = _number(config, *rules[kind])
            kinds = [other if every and (layer + 1) % every else FULL for layer in range(count)]
            return [*kinds[:-1], FULL] if kind in _LAST_IS_FULL and kinds else kinds
    if kind in _ALL_FULL or kind in _ALL_SLIDING:
        return [FULL if kind in _ALL_FULL else SLIDING] * count
    if kind in _FROM_FIRST:
        every = _number(config, *_FROM_FIRST[kind])
        return [FULL if layer % max(every, 1) == 0 else SLIDING for layer in range(count)]
    if config.get("use_sliding_window") is not None and config.get("max_window_layers") is not None:
        first = config.number("max_window_layers") if sliding_window(config) else count
        return [SLIDING if layer >= first else FULL for layer in range(count)]
    return []


def sliding_window(config: Configuration) -> int | None:
    """Tokens of the window, None where there is none or where it is switched off."""
    if config.get("use_sliding_window") is False:
        return None
    window = config.get("sliding_window", "window_size", default=_WINDOWS.get(config.model_type))
    return int(window) if isinstance(window, int | float) and window > 0 else None


def _number(config: Configuration, default: int, names: tuple[str, ...]) -> int:
    return config.number(*names, default=default) if names else default
