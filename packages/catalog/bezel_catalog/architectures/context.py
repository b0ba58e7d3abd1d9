"""Context of a model as vLLM derives it where max-model-len is not set.

Source: vLLM 0.32.0, `vllm/transformers_utils/model_arch_config_convertor.py` (derive_max_model_len_and_key) and
`vllm/config/model.py` (_get_and_verify_max_len).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_catalog.architectures.configuration import Configuration

DEFAULT_CONTEXT = 2048
"""Tokens that vLLM assumes where a file gives no length."""
_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
_EMBEDDING_GEMMA_2 = 8192  # vllm/model_executor/models/config.py
# Kinds of scaling whose factor the written length already includes.
_SCALED = ("su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling")


def read_context(config: Configuration) -> int:
    """Tokens of the longest sequence that vLLM serves unless max-model-len is set."""
    lengths = [value for key in _KEYS if isinstance(value := config.get(key), int | float) and value > 0]
    written = config.get("model_max_length")
    length = written if written and isinstance(written, int | float) else min(lengths, default=DEFAULT_CONTEXT)
    if config.model_type.startswith("embedding_gemma2"):
        length = min(length, _EMBEDDING_GEMMA_2)
    kinds = list(_rope_parameters(config))
    factor: float = 1
    if "gemma3" not in config.model_type:
        for rope in kinds:
            if _rope_type(rope) not in _SCALED and isinstance(rope.get("factor"), int | float):
                factor = rope["factor"]
    if any(_rope_type(rope) == "longrope" for rope in kinds):
        return int(config.get("original_max_position_embeddings", default=length * factor))
    return int(length * factor)


def _rope_type(rope: Mapping[str, Any]) -> str:
    return str(rope.get("rope_type") or rope.get("type") or "default")


def _rope_parameters(config: Configuration) -> Iterator[Mapping[str, Any]]:
    """Parameters of the rotary positions: one set, or one for each kind of layer."""
    for name in ("rope_parameters", "rope_scaling"):
        value = config.values.get(name)
        if isinstance(value, dict):
            inner = [item for item in value.values() if isinstance(item, dict)]
            yield from inner or [value]
