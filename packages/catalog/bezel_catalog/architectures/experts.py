"""Experts of a model: how many there are, how many a token takes, and how many layers have any.

Source: vLLM 0.32.0, `vllm/transformers_utils/model_arch_config_convertor.py` (get_num_experts,
get_num_experts_per_token); the layers by the fields of the models that have dense ones as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel_catalog.architectures.configuration import Configuration

_COUNT = ("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")
_CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "moe_k")
_WIDTH = ("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size", "ffn_dim")
_SPARSE = frozenset(("sparse", "moe", "hash_moe", "E"))


@dataclass(frozen=True, slots=True)
class Experts:
    """Experts of a layer: all of them, those that a token takes, the inner size of one, and the layers with any."""

    count: int = 0
    chosen: int = 0
    width: int = 0
    layers: int = 0

    @property
    def active_share(self) -> float:
        """Share of the experts that one token passes through; 1 without experts."""
        return min(1.0, self.chosen / self.count) if self.count and self.chosen else 1.0


def read_experts(config: Configuration, layers: int) -> Experts:
    """The experts of a model.

    Args:
        config: the language model's part.
        layers: number of its layers.
    """
    part = config.part("ffn_config") or config
    count = _largest(part, _COUNT)
    if not count:
        return Experts()
    return Experts(count, _largest(part, _CHOSEN), _largest(part, _WIDTH), _expert_layers(config, layers))


def _largest(config: Configuration, names: tuple[str, ...]) -> int:
    """A number of the configuration, the largest of a list, 0 where it gives none."""
    value = config.get(*names)
    if isinstance(value, list):
        value = max((item for item in value if isinstance(item, int)), default=0)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _expert_layers(config: Configuration, layers: int) -> int:
    """Number of layers with experts."""
    kinds = config.texts("mlp_layer_types") or config.texts("layers_block_type")
    pattern = config.values.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        kinds = list(pattern)
    if _SPARSE.intersection(kinds):
        return sum(kind in _SPARSE for kind in kinds)
    indices = range(layers)
    if (listed := config.values.get("moe_layers")) and isinstance(listed, list):
        return len(listed)
    if period := _largest(config, ("expert_layer_period",)):
        offset = _largest(config, ("expert_layer_offset",))
        return sum(layer % period == offset for layer in indices)
    if step := _largest(config, ("interleave_moe_layer_step", "decoder_sparse_step")):
        return sum((layer + 1) % step == 0 for layer in indices)
    first = _largest(config, ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"))
    frequency = _largest(config, ("moe_layer_freq",)) or 1
    return sum(layer >= first and layer % frequency == 0 for layer in indices)
