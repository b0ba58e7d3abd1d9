"""What a folder must hold for vLLM to load a model from it, and what to tell who finds that it does not.

Pure rules over names and sizes; who lists the folder is `model_files`. They follow the layout of the Hugging Face hub,
which vLLM expects: `config.json`, weights as safetensors (one file, or shards numbered `-00001-of-00004`), a tokenizer.
"""

import re
import shlex
from collections.abc import Mapping

_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<of>\d{5})\.safetensors")
_SHOWN = 5


def missing_parts(files: Mapping[str, int]) -> list[str]:
    """Say what a folder lacks to be a model, in words; nothing where it is complete.

    Args:
        files: Size in bytes of each file, by its name relative to the folder.
    """
    problems = []
    if "config.json" not in files:
        problems.append("config.json is missing")
    weights = [name for name in files if name.endswith(".safetensors")]
    if not weights:
        problems.append("there are no weights (*.safetensors)")
    absent = _absent_shards(weights)
    if absent:
        more = f" and {len(absent) - _SHOWN} more" if len(absent) > _SHOWN else ""
        problems.append(f"{len(absent)} weight files are missing: {', '.join(absent[:_SHOWN])}{more}")
    if not any(name.startswith("tokenizer") for name in files):
        problems.append("the tokenizer (tokenizer.json) is missing")
    empty = sorted(name for name in files if files[name] == 0 and _is_needed(name))
    if empty:
        problems.append(f"{', '.join(empty[:_SHOWN])} {'are' if len(empty) > 1 else 'is'} empty")
    return problems


def _absent_shards(weights: list[str]) -> list[str]:
    expected = set()
    for name in weights:
        shard = _SHARD.fullmatch(name)
        if shard:
            expected |= {f"{shard['stem']}-{n:05}-of-{shard['of']}.safetensors" for n in range(1, int(shard["of"]) + 1)}
    return sorted(expected.difference(weights))


def _is_needed(name: str) -> bool:
    return name == "config.json" or name.startswith("tokenizer") or name.endswith(".safetensors")


def copy_commands(source: str, location: str) -> str:
    """Give the commands that bring a model of the hub into a bucket.

    Args:
        source: Id on the Hugging Face hub, e.g. `google/gemma-4-12b-it`; "" for files that only the user has.
        location: `gs://BUCKET/PATH`.
    """
    if not source:
        return f"gcloud storage cp --recursive FOLDER_WITH_YOUR_COPY/* {shlex.quote(location + '/')}"
    local = source.rpartition("/")[2]
    return (
        f"hf download {shlex.quote(source)} --local-dir {shlex.quote(local)}\n"
        f"gcloud storage cp --recursive {shlex.quote(local)}/* {shlex.quote(location + '/')}"
    )


def not_a_model(location: str, source: str, problems: list[str]) -> str:
    """Write the message for a folder that vLLM could not load: what is wrong, what it would cause, how to mend it."""
    return (
        f"{location} does not hold a whole model: {'; '.join(problems)}.\n"
        "  Consequence: vLLM would end while it starts, and Cloud Run would report no more than that nothing listens on"
        " the port, after the GPU was paid for.\n"
        "  Repair: copy the model there, then run the same command again:\n"
        + _indented(copy_commands(source, location))
    )


def no_bucket(bucket: str, location: str, source: str) -> str:
    """Write the message for a bucket that neither exists nor is made by the stack."""
    return (
        f"Bucket {bucket} does not exist, so there is no model at {location}.\n"
        "  Consequence: Cloud Run could not mount the weights, and the service would not start.\n"
        "  Repair: correct the bucket's name, or let the stack make it (weights: {create: true}); copy the model:\n"
        + _indented(copy_commands(source, location))
    )


def unreachable(location: str, why: str) -> str:
    """Write the message for a folder that could not be listed; whether it holds a model stays unknown."""
    return (
        f"{location} could not be listed: {why.rstrip('.')}.\n"
        "  Consequence: nobody knows whether it holds a model; without one vLLM ends while it starts.\n"
        "  Repair: make Cloud Storage reachable with credentials that may list the bucket"
        " (roles/storage.objectViewer), then run the same command again."
    )


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
