"""LoRA adapters of a real vLLM that serves a small model: adapters of zeros, of that model's widths.

The adapters of a container are made for its own model, so a server that has a small one in its place could not load
them. One that the container could not load either stays as it is: the server says why.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bezel_base.atomic_write import write_whole
from bezel_localcloud.core.paths import Paths
from bezel_localcloud.services.model_hub.stored import find_repository
from bezel_simulated_vllm.configuration.adapters import CONFIG
from bezel_simulated_vllm.configuration.checkpoint import Checkpoint
from bezel_simulated_vllm.synthetic_weights import zero_adapter

RANK = 1  # every limit of a server's ranks allows it


def real_modules(
    modules: Sequence[str], model: Checkpoint, paths: Paths | None, mounts: Mapping[str, str], notes: list[str]
) -> list[str]:
    """The words of `--lora-modules` for the small model; its adapters are written below localcloud's directory.

    Args:
        modules: Values of the option, each `NAME=PATH` or JSON.
        model: The small model.
        paths: Layout of localcloud's directory; None writes nothing, for the notes alone.
        mounts: Mount path -> folder of this machine.
        notes: Gets a note for each adapter that is replaced.
    """
    return [_module(word, model, paths, mounts, notes) for word in modules]


def _module(word: str, model: Checkpoint, paths: Paths | None, mounts: Mapping[str, str], notes: list[str]) -> str:
    is_json = word.startswith("{")
    try:
        fields = json.loads(word) if is_json else dict(zip(("name", "path"), word.split("=", 1), strict=True))
        name, path = str(fields["name"]), str(fields["path"])
    except (ValueError, KeyError, TypeError):
        return word  # the server refuses it
    if paths is not None and not _is_there(path, paths, mounts):
        return word
    notes.append(f"adapter {name}: {path} -> an adapter of zeros of the small model")
    if paths is None:
        return word
    folder = paths.hub / "adapters" / hashlib.sha256(name.encode()).hexdigest()[:16]  # a name may be any text
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for file, content in zero_adapter("", model.hidden_size, model.mlp_sizes[0], RANK).items():
        write_whole(folder / file, content)
    return json.dumps(fields | {"path": str(folder)}) if is_json else f"{name}={folder}"


def _is_there(path: str, paths: Paths, mounts: Mapping[str, str]) -> bool:
    """Whether a container finds an adapter: in a mounted bucket, or on the hub."""
    for mount, folder in mounts.items():
        if path.startswith(f"{mount.rstrip('/')}/"):
            return (Path(folder) / path.removeprefix(mount).strip("/") / CONFIG).is_file()
    try:
        repository = find_repository(paths, path)
    except ValueError:
        return False
    return repository is not None and CONFIG in repository.files
