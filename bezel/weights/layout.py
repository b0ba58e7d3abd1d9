"""Layout of a model's folder: the files that vLLM needs to load it, and the hub's files that it does not use.

Pure rules over names and sizes, after the layout of the Hugging Face hub, which vLLM expects: `config.json`, weights as
safetensors (one file, or shards numbered `-00001-of-00004` with an index that names them), a tokenizer.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

INDEX = "model.safetensors.index.json"
# Other formats of the same weights, which would double the bytes copied and paid for, and the hub's own files. vLLM's
# own default leaves out original/ too (--ignore-patterns).
LEFT_OUT = ("original/*", "*.bin", "*.pt", "*.pth", "*.gguf", "*.onnx", "*.msgpack", "*.h5", ".gitattributes")

_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<of>\d{5})\.safetensors")
_SHOWN = 5


def is_wanted(name: str) -> bool:
    """Whether a file of a source is worth copying."""
    return not any(fnmatchcase(name, pattern) for pattern in LEFT_OUT)


def missing_parts(files: Mapping[str, int], indexed: Iterable[str] = (), *, draft: bool = False) -> list[str]:
    """Return what a folder lacks to be a model, in words for the user; an empty list where it is complete.

    Args:
        files: Size in bytes of each file, by its name relative to the folder.
        indexed: The weight files that its index names, where the caller read it.
        draft: Whether it is a draft model, which takes the tokenizer of the model that it drafts for.
    """
    problems = []
    if "config.json" not in files:
        problems.append("config.json is missing")
    weights = [name for name in files if name.endswith(".safetensors")]
    if not weights:
        problems.append("there are no weights (*.safetensors)")
    absent = sorted({*_absent_shards(weights), *(name for name in indexed if name not in files)})
    if absent:
        more = f" and {len(absent) - _SHOWN} more" if len(absent) > _SHOWN else ""
        problems.append(f"{len(absent)} weight files are missing: {', '.join(absent[:_SHOWN])}{more}")
    if not draft and not any(name.startswith("tokenizer") for name in files):
        problems.append("the tokenizer (tokenizer.json) is missing")
    empty = sorted(name for name in files if files[name] == 0 and _is_needed(name))
    if empty:
        problems.append(f"{', '.join(empty[:_SHOWN])} {'are' if len(empty) > 1 else 'is'} empty")
    return problems


def _absent_shards(weights: list[str]) -> set[str]:
    expected = set()
    for name in weights:
        shard = _SHARD.fullmatch(name)
        if shard:
            expected |= {f"{shard['stem']}-{n:05}-of-{shard['of']}.safetensors" for n in range(1, int(shard["of"]) + 1)}
    return expected.difference(weights)


def _is_needed(name: str) -> bool:
    return name == "config.json" or name.startswith("tokenizer") or name.endswith(".safetensors")
