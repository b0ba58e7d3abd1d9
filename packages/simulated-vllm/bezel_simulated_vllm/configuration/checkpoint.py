"""Properties of a model from its folder of files: shape, context, weight size, quantisation.

Reads `config.json` and the safetensors index only, never the weights, so that synthetic files with the real shape and
size serve as well as the real ones. Gemma 4's keys are read here, all others by `bezel_catalog.architectures`.
"""

from __future__ import annotations

import json
import string
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bezel_catalog.architectures import read_architecture
from bezel_catalog.architectures.layers import (
    AttentionLayers,
    ChunkedLayers,
    CrossLayers,
    EncoderLayers,
    FullLayers,
    LatentLayers,
    SharedLayers,
    SlidingLayers,
)
from bezel_catalog.architectures.pooling import POOLING_MODULES
from bezel_catalog.vllm.parser_families import parser_families

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bezel_catalog.architectures.layers import Layers

# Bits per weight in compressed-tensors: 4-bit weights with a 16-bit scale for each group of 64, or 8-bit floats.
_STORED_BITS = {"pack-quantized": 4.25, "float-quantized": 8.0}

_FEWEST_TOKENS = 16  # of a vocabulary; one that is seeded has less
# Answers to questions that are read as one token, of /v1/systemone and /v1/decisions.
_LABELS = frozenset({*string.ascii_uppercase, *string.digits, "yes", "no"})

# Defaults of transformers' configuration and processor of Gemma 4.
_IMAGE_TOKENS, _AUDIO_TOKENS = 280, 750


@dataclass(frozen=True)
class Checkpoint:
    """One model as its files describe it.

    Attributes:
        architecture: the class name in config.json, e.g. Gemma4ForCausalLM.
        model_type: e.g. gemma4_text; an assistant for multi-token prediction ends in `_assistant`.
        weight_bytes: bytes of all tensors, from the index's metadata, else the files' own size.
        largest_shard_bytes: bytes that the loader holds in host memory at once.
        sliding_layers, full_layers: those with a KV cache of their own.
        shared_sliding_layers, shared_full_layers: those that read the cache of an earlier layer of their kind.
        lookup_parameters: embeddings of single layers: resident, and read one row for each token.
        active_fraction: share of the weights that one token passes through (below 1 with experts).
        quantisation: the method that the checkpoint names, e.g. "compressed-tensors"; None for plain bf16.
        bits_per_weight: average width of a stored parameter.
        image_tokens, audio_tokens: of one item; no audio tokens without an audio tower.
        bidirectional_images: whether tokens of one image attend to each other in both directions.
        mlp_sizes: inner sizes of the MLPs of one layer: the dense one, then each expert.
        has_label_tokens: whether its tokenizer has a token for each letter, each digit, "yes" and "no".
        is_causal: whether a token attends to earlier ones only; an encoder keeps no cache.
        has_template: whether its files have a template for messages; one without a real tokenizer stands for that of
            the published model.
        has_pooling_module: whether modules.json of Sentence Transformers names a module that pools.
        parser_tokens: of the tokens that parsers of calls and thoughts need, those that its tokenizer has; None where
            the tokenizer is not known.
        config: content of config.json.
    """

    architecture: str
    model_type: str
    context: int
    vocabulary: int
    hidden_size: int
    attention_heads: int
    sliding_layers: int
    full_layers: int
    shared_sliding_layers: int
    shared_full_layers: int
    sliding_kv_heads: int
    full_kv_heads: int
    sliding_head_dim: int
    full_head_dim: int
    window: int
    weight_bytes: int
    largest_shard_bytes: int
    lookup_parameters: int
    active_fraction: float
    quantisation: str | None
    bits_per_weight: float
    multimodal: bool
    image_tokens: int
    audio_tokens: int
    bidirectional_images: bool
    mlp_sizes: tuple[int, ...]
    has_label_tokens: bool
    is_causal: bool = True
    has_pooling_module: bool = False
    has_template: bool = True
    parser_tokens: frozenset[str] | None = None
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def experts(self) -> int:
        """The number of experts in each layer; 0 for a dense model."""
        return len(self.mlp_sizes) - 1

    @property
    def active_parameters(self) -> float:
        """Parameters that every token is multiplied with.

        Embeddings, which stay in 16 bits in every encoding, are left out: the tied one is read in each step, but
        multiplied with only where a token is sampled, and those of single layers are only looked up.
        """
        embedding = 2 * (self.vocabulary * self.hidden_size + self.lookup_parameters)
        return max(0, self.weight_bytes - embedding) * 8 / self.bits_per_weight * self.active_fraction

    @property
    def step_weight_bytes(self) -> int:
        """The most bytes of weights that one step reads: all but the embeddings that are only looked up."""
        return self.weight_bytes - 2 * self.lookup_parameters

    @property
    def attending_layers(self) -> tuple[int, int]:
        """Sliding and full layers that read a cache, their own or another layer's."""
        return self.sliding_layers + self.shared_sliding_layers, self.full_layers + self.shared_full_layers

    @property
    def assistant(self) -> bool:
        """Whether this is a draft model for multi-token prediction."""
        return self.model_type.endswith("_assistant")

    def kv_bytes_read(self, length: int, bytes_per_element: int) -> int:
        """Bytes of the KV cache that one decode step of a sequence of `length` tokens reads."""
        sliding_layers, full_layers = self.attending_layers
        sliding = sliding_layers * self.sliding_kv_heads * self.sliding_head_dim * min(length, self.window)
        full = full_layers * self.full_kv_heads * self.full_head_dim * length
        return 2 * bytes_per_element * (sliding + full)


def read_checkpoint(directory: Path) -> Checkpoint:
    """Read the model in `directory`.

    Raises:
        FileNotFoundError: the directory has no config.json.
        ValueError: config.json or the index is not a JSON object.
    """
    config: dict[str, Any] = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    is_gemma4 = str(config.get("model_type", "gemma4")).startswith("gemma4")
    if not is_gemma4 and config.get("architectures"):
        return _read_other(config, directory)
    text: dict[str, Any] = config.get("text_config") or config

    def number(key: str, default: int = 0) -> int:
        return int(text.get(key) or default)

    context, vocabulary, heads = (
        int(text[key]) for key in ("max_position_embeddings", "vocab_size", "num_attention_heads")
    )
    kinds: list[str] = text.get("layer_types") or ["full_attention"] * int(text["num_hidden_layers"])
    cached_kinds = kinds[: len(kinds) - number("num_kv_shared_layers")]
    sliding, all_sliding = cached_kinds.count("sliding_attention"), kinds.count("sliding_attention")
    head_dim = number("head_dim", number("hidden_size") // heads)
    # A checkpoint may list the sizes of single layers instead.
    by_layer = text.get("per_layer_config") or {}
    full_rows = [row for layer, row in by_layer.items() if kinds[int(layer)] == "full_attention"]
    full_head_dim = next((row["head_dim"] for row in full_rows if row.get("head_dim")), head_dim)
    kv_heads = number("num_key_value_heads", heads)
    full_kv_heads = next((row["num_key_value_heads"] for row in full_rows if row.get("num_key_value_heads")), kv_heads)
    total, largest = _weights(directory)
    quantisation = config.get("quantization_config") or {}
    experts = number("num_experts")
    return Checkpoint(
        architecture=str((config.get("architectures") or ["Gemma4ForCausalLM"])[0]),
        model_type=str(config.get("model_type", "gemma4")),
        context=context,
        vocabulary=vocabulary,
        hidden_size=int(text["hidden_size"]),
        attention_heads=heads,
        sliding_layers=sliding,
        full_layers=len(cached_kinds) - sliding,
        shared_sliding_layers=all_sliding - sliding,
        shared_full_layers=len(kinds) - all_sliding - len(cached_kinds) + sliding,
        sliding_kv_heads=kv_heads,
        full_kv_heads=number("num_global_key_value_heads", full_kv_heads),
        sliding_head_dim=head_dim,
        full_head_dim=number("global_head_dim", full_head_dim),
        window=number("sliding_window", context),
        weight_bytes=total,
        largest_shard_bytes=largest,
        lookup_parameters=vocabulary * len(kinds) * number("hidden_size_per_layer_input"),
        active_fraction=_active_fraction(
            number("hidden_size"),
            number("intermediate_size"),
            (experts, number("top_k_experts"), number("moe_intermediate_size")),
        ),
        quantisation=quantisation.get("quant_method"),
        bits_per_weight=_STORED_BITS.get(str(quantisation.get("format")), 4.25) if quantisation else 16.0,
        multimodal=any(key in config for key in ("vision_config", "audio_config")),
        image_tokens=_image_tokens(config.get("vision_config") or {}),
        audio_tokens=_AUDIO_TOKENS if config.get("audio_config") is not None else 0,
        bidirectional_images=_bidirectional_images(config, text),
        mlp_sizes=(number("intermediate_size"), *[number("moe_intermediate_size")] * experts),
        has_pooling_module=_has_pooling_module(directory),
        has_template=_has_template(directory),
        has_label_tokens=_has_label_tokens(directory),
        parser_tokens=_parser_tokens(directory),
        config=config,
    )


def _read_other(config: dict[str, Any], directory: Path) -> Checkpoint:
    """Return a model of any architecture, whose layers the catalogue reads.

    States of a sequence are not counted: the pool's blocks are those of the layers that keep tokens.
    """
    shape = read_architecture(config)
    windowed = _groups(shape.cache, (SlidingLayers, ChunkedLayers))
    full = _groups(shape.cache, (FullLayers, CrossLayers, LatentLayers))
    encoding = _groups(shape.cache, (EncoderLayers, SharedLayers))
    sliding_heads, sliding_dim = _sizes(windowed or full or encoding)
    full_heads, full_dim = _sizes(full or windowed or encoding)
    window = next((group.window if isinstance(group, SlidingLayers) else group.chunk for group in windowed), 0)
    quantisation = config.get("quantization_config") or {}
    total, largest = _weights(directory)
    expert_sizes = (shape.experts, shape.active_experts, shape.expert_intermediate_size)
    return Checkpoint(
        architecture=shape.class_name,
        model_type=shape.model_type,
        context=shape.context,
        vocabulary=shape.vocabulary,
        hidden_size=shape.hidden_size,
        attention_heads=shape.attention_heads,
        sliding_layers=sum(group.count for group in windowed),
        full_layers=sum(group.count for group in full),
        shared_sliding_layers=0,
        shared_full_layers=sum(group.count for group in encoding),
        sliding_kv_heads=sliding_heads,
        full_kv_heads=full_heads,
        sliding_head_dim=sliding_dim,
        full_head_dim=full_dim,
        window=window or shape.context,
        weight_bytes=total,
        largest_shard_bytes=largest,
        lookup_parameters=0,
        active_fraction=_active_fraction(shape.hidden_size, shape.intermediate_size, expert_sizes),
        quantisation=quantisation.get("quant_method"),
        bits_per_weight=_STORED_BITS.get(str(quantisation.get("format")), 4.25) if quantisation else 16.0,
        multimodal=len(shape.modalities) > 1,
        image_tokens=_image_tokens(config.get("vision_config") or {}),
        audio_tokens=_AUDIO_TOKENS if config.get("audio_config") is not None else 0,
        bidirectional_images=False,
        mlp_sizes=(shape.intermediate_size, *[shape.expert_intermediate_size] * shape.experts),
        is_causal=not any(isinstance(group, EncoderLayers) for group in shape.cache),
        has_pooling_module=_has_pooling_module(directory),
        has_template=_has_template(directory),
        has_label_tokens=_has_label_tokens(directory),
        parser_tokens=_parser_tokens(directory),
        config=config,
    )


def _groups(cache: Sequence[Layers], kinds: tuple[type[Layers], ...]) -> list[Any]:
    return [group for group in cache if isinstance(group, kinds)]


def _sizes(groups: Sequence[AttentionLayers | LatentLayers]) -> tuple[int, int]:
    """Return heads and dimension of a layer; with layers of several sizes one head as wide as they are on average."""
    sizes = {(group.kv_heads, group.head_dim) for group in groups if isinstance(group, AttentionLayers)}
    widths = [group.value_dim for group in groups if isinstance(group, AttentionLayers)]
    if len(sizes) == 1 and not any(widths) and all(isinstance(group, AttentionLayers) for group in groups):
        return sizes.pop()
    layers = sum(group.count for group in groups)
    elements = sum(group.count * _elements(group) for group in groups)
    return (1, elements // layers // 2) if layers else (1, 0)


def _elements(group: AttentionLayers | LatentLayers) -> int:
    """Return the numbers that a layer keeps of a token: a key and a value of each head, or one compressed vector."""
    if isinstance(group, LatentLayers):
        return group.width
    return group.kv_heads * (group.head_dim + (group.value_dim or group.head_dim))


def _has_pooling_module(directory: Path) -> bool:
    try:
        modules = json.loads((directory / "modules.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return any(isinstance(module, dict) and module.get("type") in POOLING_MODULES for module in modules)


def _has_template(directory: Path) -> bool:
    try:
        vocabulary = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        settings = json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, LookupError, TypeError):
        return True
    is_seeded = len(vocabulary) < _FEWEST_TOKENS
    return is_seeded or "chat_template" in settings or any(directory.glob("chat_template.*"))


def _has_label_tokens(directory: Path) -> bool:
    """Return whether the vocabulary has every label; one that is seeded empty stands for that of the published model.

    A file that is no tokenizer has none: what the real server says of it is not decided here.
    """
    file = directory / "tokenizer.json"
    try:
        vocabulary = json.loads(file.read_text(encoding="utf-8"))["model"]["vocab"]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    # That of a unigram model is rows of a piece and its score.
    pieces = set(vocabulary) if isinstance(vocabulary, dict) else {row[0] for row in vocabulary}
    return not pieces or pieces >= _LABELS


def _parser_tokens(directory: Path) -> frozenset[str] | None:
    """Return which tokens that some parser needs the tokenizer has; None without words."""
    try:
        content = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
        vocabulary, added = content["model"]["vocab"], content.get("added_tokens") or ()
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    pieces = set(vocabulary) if isinstance(vocabulary, dict) else {row[0] for row in vocabulary}
    needed = {token for rows in parser_families().values() for row in rows for token in row.tokens}
    return frozenset(needed & (pieces | {each["content"] for each in added})) if pieces else None


def _image_tokens(vision: dict[str, Any]) -> int:
    """Return the tokens of one image, by the key of the tower or of the unified model."""
    return int(vision.get("default_output_length") or vision.get("num_soft_tokens") or _IMAGE_TOKENS)


def _bidirectional_images(config: dict[str, Any], text: dict[str, Any]) -> bool:
    """Return whether `use_bidirectional_attention` is vision, which is the default of the unified model only."""
    default = "vision" if str(config.get("model_type")).startswith("gemma4_unified") else None
    return bool(text.get("use_bidirectional_attention", default) == "vision")


def _active_fraction(hidden: int, intermediate: int, experts: tuple[int, int, int]) -> float:
    """Return the share of a layer's weights that a token passes through: the dense part and its selected experts.

    Args:
        hidden: size of the hidden state.
        intermediate: inner size of the dense MLP.
        experts: their number, how many a token passes through, and their inner size.
    """
    count, chosen, size = experts
    if not count:
        return 1.0
    expert = 3 * hidden * size
    dense = 3 * hidden * intermediate + 4 * hidden * hidden
    return (dense + chosen * expert) / (dense + count * expert)


def _weights(directory: Path) -> tuple[int, int]:
    """Return the bytes of all weights and of the largest shard."""
    index = directory / "model.safetensors.index.json"
    if index.exists():
        content = json.loads(index.read_text(encoding="utf-8"))
        total = int(content["metadata"]["total_size"])
        shards = len(set(content["weight_map"].values())) or 1
        return total, -(-total // shards)
    sizes = [path.stat().st_size for path in directory.glob("*.safetensors")]
    return sum(sizes), max(sizes, default=0)
