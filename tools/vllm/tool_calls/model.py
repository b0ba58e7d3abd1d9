"""A tiny model whose tokenizer has the marks of every family's tool calls, so that each parser can be constructed.

Owns the folder's files and the bias of tokens with which random weights write the shortest answer that a grammar
allows: the ends of texts, objects and answers are likely, blanks are not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MARKS = tuple(Path(__file__).with_name("marks.txt").read_text(encoding="utf-8").split())
_ENDS = {"<eos>": 100.0, "}": 60.0, "]": 60.0, "<": 55.0, '"': 50.0}
_BLANKS = frozenset("ĠĊĉč")


def make_model(tokenizer: Path, folder: Path) -> dict[str, float]:
    """Write the model, and return the bias of its tokens by id.

    Args:
        tokenizer: a folder with a tokenizer of transformers, e.g. that of the tiny Gemma 4.
        folder: where the model is written; it is made.
    """
    folder.mkdir(parents=True)
    content: dict[str, Any] = json.loads((tokenizer / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = content["model"]["vocab"]
    present = {each["content"] for each in content["added_tokens"]}
    first = max(*vocabulary.values(), *(each["id"] for each in content["added_tokens"])) + 1
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    content["added_tokens"] += [
        {"id": first + number, "content": mark, **plain}
        for number, mark in enumerate(mark for mark in MARKS if mark not in present)
    ]
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    for name in ("tokenizer_config.json", "chat_template.jinja"):
        (folder / name).write_bytes((tokenizer / name).read_bytes())
    size = -(-(first + len(MARKS)) // 64) * 64
    (folder / "config.json").write_text(json.dumps(_config(size)), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"\0" * 400_000)  # never read: the weights are dummies
    blanks = {str(number): -100.0 for word, number in vocabulary.items() if word and _BLANKS.issuperset(word)}
    return blanks | {str(vocabulary[word]): bias for word, bias in _ENDS.items() if word in vocabulary}


def _config(size: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "vocab_size": size,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": True,
        "bos_token_id": 2,
        "eos_token_id": 1,
    }
