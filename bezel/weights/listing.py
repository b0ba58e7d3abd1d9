"""List of the models in a bucket, each checked for missing files by its files' names and the index of its shards."""

import json
from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass

from bezel.weights.bucket import Bucket, Stored
from bezel.weights.layout import INDEX, missing_parts


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
        _model(bucket, folder, held, draft=folder in drafts)
        for folder, held in sorted(folders.items())
        if _is_model(held)
    ]


def _is_model(held: list[Stored]) -> bool:
    names = {stored.name.rpartition("/")[2] for stored in held}
    return "config.json" in names or any(name.endswith(".safetensors") for name in names)


def _model(bucket: Bucket, folder: str, held: list[Stored], *, draft: bool) -> StoredModel:
    files = {stored.name.rpartition("/")[2]: stored.size for stored in held}
    indexed = _indexed(bucket, f"{folder}/{INDEX}".lstrip("/")) if INDEX in files else ()
    problems = missing_parts(files, indexed, draft=draft)
    sources = {stored.metadata.get("bezel-source", "") for stored in held}
    source = sources.pop() if len(sources) == 1 else ""
    return StoredModel(folder, len(files), sum(files.values()), tuple(problems), source)


def _indexed(bucket: Bucket, name: str) -> list[str]:
    """Return the files that a model's index names; an index that cannot be parsed is reported as one missing file."""
    with bucket.open(name) as pieces:
        content = b"".join(pieces)
    try:
        return [str(file) for file in set(json.loads(content)["weight_map"].values())]
    except (ValueError, KeyError, TypeError, AttributeError):
        return [f"(whatever {INDEX} should name)"]
