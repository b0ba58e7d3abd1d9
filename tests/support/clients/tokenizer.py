"""A small tokenizer in Hugging Face's format, for load clients that count tokens themselves."""

import json
from pathlib import Path

_SPECIAL = ("<unk>", "<s>", "</s>")
# A character each, as the byte-level form spells them: a space is Ġ and a line's end Ċ.
_CHARACTERS = ("Ġ", "Ċ", *(chr(code) for code in range(ord("!"), ord("~") + 1)))


def write_tokenizer(folder: Path) -> Path:
    """Write a tokenizer into a folder, which is made if need be; return the folder.

    Each printable character of ASCII is a token, so that any English text has tokens and is found again from them.
    """
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": index, "content": word} | flags for index, word in enumerate(_SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": bytes_,
        "post_processor": None,
        "decoder": bytes_,
        "model": {
            "type": "BPE",
            "vocab": {word: index for index, word in enumerate([*_SPECIAL, *_CHARACTERS])},
            "merges": [],
            "unk_token": "<unk>",
        },
    }
    configuration = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "<unk>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "model_max_length": 16384,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(configuration))
    return folder
