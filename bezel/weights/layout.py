"""Layout of a model's folder: the files that vLLM needs to load it, and the hub's files that it does not use.

Pure rules over names and sizes, after the layout of the Hugging Face hub, which vLLM expects: `config.json`, weights as
safetensors (one file, or shards numbered `-00001-of-00004` with an index that names them), a tokenizer.
"""

import json
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from bezel.weights.adapter import ADAPTER_CONFIG, ADAPTER_WEIGHTS, missing_adapter_parts
from bezel.weights.bucket import Bucket, Stored

INDEX = "model.safetensors.index.json"
# Other formats of the same weights, which would double the bytes copied and paid for, and the hub's own files. vLLM's
# own default leaves out original/ too (--ignore-patterns).
LEFT_OUT = ("original/*", "*.bin", "*.pt", "*.pth", "*.gguf", "*.onnx", "*.msgpack", "*.h5", ".gitattributes")

_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<of>\d{5})\.safetensors")
_SHOWN = 5


FolderKind = Literal["model", "draft", "adapter"]
"""What a folder holds: a model, a draft model beside one, or a LoRA adapter of one."""


def is_wanted(name: str, kind: FolderKind = "model") -> bool:
    """Whether a file of a source is worth copying; of an adapter the two files that vLLM reads.

    Repositories of adapters hold checkpoints of their training, too, and weights as pickles, which run code.
    """
    if kind == "adapter":
        return name in (ADAPTER_CONFIG, ADAPTER_WEIGHTS)
    return not any(fnmatchcase(name, pattern) for pattern in LEFT_OUT)


def missing_files(files: Mapping[str, int], kind: FolderKind) -> list[str]:
    """Return what a folder lacks to be of its kind, in words for the user; an empty list where it is complete.

    Args:
        files: Size in bytes of each file, by its name relative to the folder.
        kind: What the folder holds.
    """
    return missing_adapter_parts(files) if kind == "adapter" else missing_parts(files, draft=kind == "draft")


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


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A folder that holds a model, or part of one; `problems` is empty for a complete one."""

    folder: str
    files: int
    size: int
    problems: tuple[str, ...]
    source: str = ""


def stored_models(bucket: Bucket, drafts: Container[str] = ()) -> list[StoredModel]:
    """Return the models of a bucket by folder; a folder with neither a configuration nor weights is not a model.

    Args:
        bucket: The bucket.
        drafts: Folders of draft models, which need no tokenizer.

    Raises:
        WeightsError: The bucket does not exist.
        RestError: It could not be listed or read.
    """
    folders: dict[str, list[Stored]] = defaultdict(list)
    for stored in bucket.objects():
        folders[stored.name.rpartition("/")[0]].append(stored)
    return [
        _model(bucket, folder, objects, draft=folder in drafts)
        for folder, objects in sorted(folders.items())
        if _is_model(objects)
    ]


def _is_model(objects: list[Stored]) -> bool:
    names = {stored.name.rpartition("/")[2] for stored in objects}
    return "config.json" in names or any(name.endswith(".safetensors") for name in names)


def _model(bucket: Bucket, folder: str, objects: list[Stored], *, draft: bool) -> StoredModel:
    files = {stored.name.rpartition("/")[2]: stored.size for stored in objects}
    indexed = _indexed_files(bucket, f"{folder}/{INDEX}".lstrip("/")) if INDEX in files else ()
    is_adapter = ADAPTER_CONFIG in files and "config.json" not in files
    problems = missing_adapter_parts(files) if is_adapter else missing_parts(files, indexed, draft=draft)
    sources = {stored.metadata.get("bezel-source", "") for stored in objects}
    source = sources.pop() if len(sources) == 1 else ""
    return StoredModel(folder, len(files), sum(files.values()), tuple(problems), source)


def _indexed_files(bucket: Bucket, name: str) -> list[str]:
    """Return the files that a model's index names; an index that cannot be parsed is reported as one missing file."""
    with bucket.open(name) as pieces:
        content = b"".join(pieces)
    try:
        return [str(file) for file in set(json.loads(content)["weight_map"].values())]
    except (ValueError, KeyError, TypeError, AttributeError):
        return [f"(whatever {INDEX} should name)"]
