"""Files of tiny models of several families, as a hub has them: configurations, headers and weights of zeros."""

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence

BITS = {"BF16": 16, "F32": 32, "I32": 32, "F8_E4M3": 8, "U8": 8}
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "dtype": "bfloat16",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 8192,
    "vocab_size": 512,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    "sliding_window": None,
    "tie_word_embeddings": False,
}
GENERATION = {"temperature": 0.6, "top_p": 0.9, "eos_token_id": [1, 2]}
TOKENIZER = {"version": "1.0", "model": {"type": "BPE", "vocab": {"<unk>": 0}, "merges": []}}
Tensors = Mapping[str, tuple[str, Sequence[int]]]


def llama_tensors(config: Mapping[str, object] = LLAMA) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Tensors of a Llama of this configuration."""
    hidden, inner, vocabulary = (int(str(config[key])) for key in ("hidden_size", "intermediate_size", "vocab_size"))
    heads = int(str(config["num_attention_heads"])) * int(str(config["head_dim"]))
    kv = int(str(config["num_key_value_heads"])) * int(str(config["head_dim"]))
    tensors: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (vocabulary, hidden),
        "model.norm.weight": (hidden,),
        "lm_head.weight": (vocabulary, hidden),
    }
    for layer in range(int(str(config["num_hidden_layers"]))):
        place = f"model.layers.{layer}"
        tensors |= {
            f"{place}.self_attn.q_proj.weight": (heads, hidden),
            f"{place}.self_attn.k_proj.weight": (kv, hidden),
            f"{place}.self_attn.v_proj.weight": (kv, hidden),
            f"{place}.self_attn.o_proj.weight": (hidden, heads),
            f"{place}.mlp.gate_proj.weight": (inner, hidden),
            f"{place}.mlp.up_proj.weight": (inner, hidden),
            f"{place}.mlp.down_proj.weight": (hidden, inner),
            f"{place}.input_layernorm.weight": (hidden,),
            f"{place}.post_attention_layernorm.weight": (hidden,),
        }
    return {name: ("BF16", shape) for name, shape in tensors.items()}


def size_of(tensors: Tensors) -> int:
    """Bytes of tensors."""
    return sum(_bytes(dtype, shape) for dtype, shape in tensors.values())


def safetensors(tensors: Tensors) -> bytes:
    """A file of the format with these tensors, all zeros."""
    rows, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        end = at + _bytes(dtype, shape)
        rows[name] = {"dtype": dtype, "shape": [*shape], "data_offsets": [at, end]}
        at = end
    return with_header(rows, bytes(at))


def random_safetensors(tensors: Tensors) -> bytes:
    """The same with small numbers in bfloat16 that look random, and norms of ones: what an untrained model has."""
    rows, data = {}, bytearray()
    for name, (dtype, shape) in tensors.items():
        count = _bytes(dtype, shape) // 2
        part = bytearray(b"\x80\x3f" * count)
        if not name.endswith("norm.weight"):
            digits = hashlib.shake_256(name.encode()).digest(2 * count)
            part[0::2] = digits[:count]
            part[1::2] = bytes(byte & 0x80 | 0x3C for byte in digits[count:])  # from 0.008 to 0.03
        rows[name] = {"dtype": dtype, "shape": [*shape], "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    return with_header(rows, bytes(data))


def with_header(rows: Mapping[str, object], data: bytes) -> bytes:
    """A file of the format with this header, whatever it says."""
    header = json.dumps({"__metadata__": {"format": "pt"}, **rows}).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data


def llama(**changes: object) -> dict[str, bytes]:
    """Files of a tiny Llama; `changes` are of its configuration."""
    return {
        "config.json": as_json({**LLAMA, **changes}),
        "generation_config.json": as_json(GENERATION),
        "tokenizer.json": as_json(TOKENIZER),
        "tokenizer_config.json": as_json({"chat_template": "{{ messages }}", "model_max_length": int(1e30)}),
        "model.safetensors": safetensors(llama_tensors()),
    }


def sharded_llama() -> dict[str, bytes]:
    """The same in two files with an index."""
    tensors = llama_tensors()
    names = sorted(tensors)
    shards = {"model-00001-of-00002.safetensors": names[:9], "model-00002-of-00002.safetensors": names[9:]}
    index = {"metadata": {"total_size": size_of(tensors)}, "weight_map": {n: f for f, ns in shards.items() for n in ns}}
    files = {file: safetensors({name: tensors[name] for name in part}) for file, part in shards.items()}
    rest = {name: content for name, content in llama().items() if name != "model.safetensors"}
    return {**rest, **files, "model.safetensors.index.json": as_json(index)}


BERT = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "dtype": "bfloat16",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "vocab_size": 512,
}


def bert_tensors() -> dict[str, tuple[str, tuple[int, ...]]]:
    """Tensors of a tiny BERT, without biases and norms."""
    hidden, inner = 64, 128
    tensors: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (512, hidden),
        "embeddings.position_embeddings.weight": (512, hidden),
        "embeddings.token_type_embeddings.weight": (2, hidden),
    }
    for layer in range(2):
        place = f"encoder.layer.{layer}"
        tensors |= {f"{place}.attention.self.{name}.weight": (hidden, hidden) for name in ("query", "key", "value")}
        tensors |= {
            f"{place}.attention.output.dense.weight": (hidden, hidden),
            f"{place}.intermediate.dense.weight": (inner, hidden),
            f"{place}.output.dense.weight": (hidden, inner),
        }
    return {name: ("BF16", shape) for name, shape in tensors.items()}


def bert(**changes: object) -> dict[str, bytes]:
    """Files of a tiny BERT; `changes` are of its configuration."""
    return {
        "config.json": as_json({**BERT, **changes}),
        "tokenizer.json": as_json(TOKENIZER),
        "tokenizer_config.json": as_json({"model_max_length": 512}),
        "model.safetensors": safetensors(bert_tensors()),
    }


def as_json(content: object) -> bytes:
    """A JSON file."""
    return json.dumps(content).encode()


def _bytes(dtype: str, shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count * BITS[dtype] // 8
