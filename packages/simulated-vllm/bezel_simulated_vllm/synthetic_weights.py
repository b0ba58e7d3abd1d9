"""Synthetic model files in the layout of the model hub: real shapes and real sizes, no real weights.

They let localcloud's server compute load time, memory and speed as for the real checkpoint, in a few kilobytes. Shapes
and sizes come from the catalogue. The 26B-A4B has two attention heads for each key/value head, as the 12B and the 31B
have; several public code bases that quote its configuration agree.
"""

from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING, Any

from bezel_catalog import Model, model, models

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHARD_BYTES = 5 * 10**9
# Names of the encodings in compressed-tensors.
_FORMATS = {"w4a16": "pack-quantized", "fp8": "float-quantized"}

# Files that are the same for every checkpoint.
_FIXED: dict[str, dict[str, object]] = {
    "generation_config.json": {"bos_token_id": 2, "eos_token_id": [1, 106], "pad_token_id": 0, "top_p": 0.95},
    "tokenizer.json": {"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}},
    "tokenizer_config.json": {"tokenizer_class": "GemmaTokenizerFast", "bos_token": "<bos>", "eos_token": "<eos>"},
}


def model_files(model_id: str) -> dict[str, bytes]:
    """Return the files of a checkpoint of the catalogue, or of the assistant that belongs to one.

    Args:
        model_id: an id of the catalogue or of the project's own models, a hub id, or the hub id of an assistant.

    Returns:
        File name -> content; the weights are a few bytes, their real size is in the index's metadata.

    Raises:
        NotInCatalogueError: neither a checkpoint nor an assistant has that id.
    """
    for row in models().values():
        if model_id == row.assistant:
            return _files(_assistant_config(row), row.assistant_bytes)
    row = next((row for row in models().values() if model_id == row.hub_id), None) or model(model_id)
    if row.files is None:
        return _files(_config(row), row.weight_bytes)
    files = _files(row.config, row.weight_bytes)
    return files | {"generation_config.json": _json(json.loads(row.files.generation))}


def adapter_files(model_id: str, rank: int) -> dict[str, bytes]:
    """Return the files of a LoRA adapter of a checkpoint, with one pair of matrices of zeros.

    Args:
        model_id: an id of the catalogue or of the project's own models.
        rank: of the adapter.

    Raises:
        NotInCatalogueError: no checkpoint has that id.
    """
    row = model(model_id)
    shape = row.architecture
    return zero_adapter(row.hub_id or row.id, shape.hidden_size, shape.intermediate_size, rank)


def zero_adapter(base: str, hidden: int, inner: int, rank: int) -> dict[str, bytes]:
    """Return the files of a LoRA adapter of the first layer's down projection, with matrices of zeros.

    Args:
        base: the name of the model that it is made for.
        hidden: the model's hidden size.
        inner: its intermediate size.
        rank: of the adapter.
    """
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": 2 * rank,
        "target_modules": ["down_proj"],
        "bias": "none",
    }
    module = "base_model.model.model.layers.0.mlp.down_proj"
    shapes = {
        f"{module}.lora_A.weight": [rank, inner],
        f"{module}.lora_B.weight": [hidden, rank],
    }
    return {"adapter_config.json": _json(config), "adapter_model.safetensors": _zeros(shapes)}


def _files(config: dict[str, Any], size: int) -> dict[str, bytes]:
    shards = -(-size // _SHARD_BYTES)
    names = [f"model-{number + 1:05d}-of-{shards:05d}.safetensors" for number in range(shards)]
    tensors = {f"made_up.shard_{number}.weight": name for number, name in enumerate(names)}
    return {
        "config.json": _json(config),
        **{name: _json(content) for name, content in _FIXED.items()},
        "model.safetensors.index.json": _json({"metadata": {"total_size": size}, "weight_map": tensors}),
        **{name: _shard(tensor) for tensor, name in tensors.items()},
    }


def _config(row: Model) -> dict[str, Any]:
    shape = row.architecture
    config: dict[str, Any] = {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "model_type": shape.model_type,
        "dtype": "bfloat16",
        "tie_word_embeddings": True,
        "text_config": _text_config(row),
    }
    if row.encoding != "bf16":
        config["quantization_config"] = {"quant_method": "compressed-tensors", "format": _FORMATS[row.encoding]}
    config |= {f"{'vision' if kind == 'image' else kind}_config": {} for kind in shape.modalities if kind != "text"}
    return config


def _text_config(row: Model) -> dict[str, Any]:
    shape = row.architecture
    text: dict[str, Any] = {
        "model_type": "gemma4_text",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.attention_heads,
        "num_key_value_heads": shape.sliding_kv_heads,
        "num_kv_shared_layers": shape.shared_kv_layers,
        "num_global_key_value_heads": shape.full_kv_heads,
        "head_dim": shape.sliding_head_dim,
        "global_head_dim": shape.full_head_dim,
        "sliding_window": shape.window,
        "max_position_embeddings": shape.context,
        "layer_types": _layer_types(shape.sliding_layers + shape.full_layers, shape.full_layers, shape.layers),
        "attention_k_eq_v": shape.attention_k_eq_v,
        "hidden_size_per_layer_input": shape.per_layer_embedding,
    }
    if shape.bidirectional_images:
        text["use_bidirectional_attention"] = "vision"
    if shape.experts:
        text |= {
            "enable_moe_block": True,
            "num_experts": shape.experts,
            "top_k_experts": shape.active_experts,
            "moe_intermediate_size": shape.expert_intermediate_size,
        }
    return text


def _assistant_config(row: Model) -> dict[str, Any]:
    text = _text_config(row) | {
        "num_hidden_layers": 4,
        "layer_types": _layer_types(4, 1, 4),
        "num_kv_shared_layers": 4,
        "hidden_size_per_layer_input": 0,
    }
    unified = "unified_" if row.architecture.model_type.endswith("unified") else ""
    return {
        "architectures": ["Gemma4AssistantForCausalLM"],
        "model_type": f"gemma4_{unified}assistant",
        "backbone_hidden_size": row.architecture.hidden_size,
        "text_config": text,
    }


def _layer_types(cached: int, full: int, layers: int) -> list[str]:
    """Return layer types with evenly spaced full attention: `full` of the first `cached` layers, the last included."""
    every = cached / full
    marks = {round(every * (number + 1)) - 1 for number in range(round(layers / every))}
    return ["full_attention" if layer in marks else "sliding_attention" for layer in range(layers)]


def _shard(tensor: str) -> bytes:
    """Return a safetensors file with one element."""
    header = json.dumps({tensor: {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + b"\0\0"


def _zeros(shapes: Mapping[str, list[int]]) -> bytes:
    """Return a safetensors file of tensors of zeros, in bfloat16."""
    header: dict[str, dict[str, object]] = {}
    end = 0
    for tensor, shape in shapes.items():
        start, end = end, end + 2 * math.prod(shape)
        header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    content = json.dumps(header).encode()
    content += b" " * (-len(content) % 8)
    return struct.pack("<Q", len(content)) + content + bytes(end)


def _json(content: object) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()
