"""LoRA adapters that the server loads at its start: how the options name them, and where their files are.

Owns `lora-modules` and `default-mm-loras`. vLLM loads each adapter after its engine has started, and exits if one
cannot be loaded (vLLM 0.32.0: entrypoints/openai/models/serving.py, entrypoints/launchers/cli_args.py,
lora/worker_manager.py). Leaves the memory of adapters to bezel_catalog.sizing.adapters, and whether a folder is there
and what its configuration says to the look at the bucket.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import of_option, setting
from bezel.planner.vllm.arguments import as_word
from bezel_base.errors import format_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bezel_base.errors import Problem

MODULES, OF_MEDIA = "lora-modules", "default-mm-loras"
_KEYS = {"name", "path", "base_model_name", "is_3d_lora_weight"}
_FORM = "NAME=/mnt/models/FOLDER"
_EXITS = "vLLM exits after it has loaded the model"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, slots=True)
class Module:
    """An adapter that is loaded at the start: the option that names it, its name for callers, and its path."""

    option: str
    name: str
    path: str


def read_modules(values: Mapping[str, Any]) -> tuple[Module, ...]:
    """The adapters that the options name, those whose words the parser refuses left out.

    Args:
        values: of the options, by option name.
    """
    read = [_module(word) for word in _words(values.get(MODULES))]
    named = [Module(MODULES, *each) for each in read if each and all(each)]
    media = values.get(OF_MEDIA)
    of_media = media.items() if isinstance(media, dict) and values.get("enable-lora") is True else ()
    return (*named, *(Module(OF_MEDIA, str(medium), str(path)) for medium, path in of_media))


def adapter_folders(values: Mapping[str, Any], mount: str) -> tuple[str, ...]:
    """Folders of the bucket that adapters are loaded from; `mount` is where it is mounted, "" where it is not."""
    prefix = f"{mount}/"
    paths = [each.path for each in read_modules(values)] if mount else []
    return tuple(dict.fromkeys(path.removeprefix(prefix).strip("/") for path in paths if path.startswith(prefix)))


def check_modules(
    values: Mapping[str, Any], served: Sequence[str], *, mount: str | None, offline: bool, own_image: bool
) -> Iterator[Problem]:
    """Refuse adapters that end the start.

    Args:
        values: of the options, by option name.
        served: names of the model.
        mount: where the bucket is mounted, "" where it is not, None for a leased machine, which gets the model alone.
        offline: whether the server reaches no hub.
        own_image: whether the image is not vLLM's own, and may hold adapters.
    """
    entries = _words(values.get(MODULES))
    for word in entries:
        if (read := _module(word)) is None:
            consequence = f"vLLM's parser refuses it and exits with code 2: it expects {_FORM} or JSON."
            yield of_option(MODULES, word, consequence, f"write {_FORM}.")
        elif not all(read):
            consequence = f"name and path are both needed: {_EXITS}."
            yield of_option(MODULES, word, consequence, f"write {_FORM}.")
    modules = read_modules(values)
    if modules and values.get("enable-lora") is not True:
        consequence = f"adapters are loaded only with enable-lora: {_EXITS} (LoRA is not enabled)."
        repair = f"add `{setting('vllm.enable-lora')}: true`."
        yield of_option(modules[0].option, format_value(modules[0].name), consequence, repair)
    names: set[str] = set()
    for module in modules:
        if module.name in served or module.name in names:
            other = "the model's own name" if module.name in served else "the name of another adapter"
            yield of_option(f"{module.option}.name", module.name, f"it is {other}: {_EXITS}.", "choose another name.")
        names.add(module.name)
        yield from _place(module, mount, offline=offline, own_image=own_image)


def _place(module: Module, mount: str | None, *, offline: bool, own_image: bool) -> Iterator[Problem]:
    path = module.path
    if mount is None:
        repair = f"set `{setting('weights.loading')}: hub` and write the adapter's id on the hub."
        where = "only the model's own folder is copied to a leased machine"
    elif mount:
        repair = f"copy the adapter into the bucket and write {mount}/FOLDER."
        where = f"the bucket is mounted at {mount}"
    else:
        repair = f"set `{setting('weights.loading')}: fuse-prefetch`, which mounts the bucket, and write {_FORM}."
        where = "no bucket is mounted"
    if path.startswith("/"):
        if not (mount and path.startswith(f"{mount}/")) and not own_image:
            consequence = (
                f"{where}, and the image has no adapters: {_EXITS} (No adapter found for {format_value(path)})."
            )
            yield of_option(module.option, path, consequence, repair)
    elif _HUB_ID.fullmatch(path) and not path.startswith("."):
        if offline:
            consequence = f"it is an id on the hub, which the server does not reach (HF_HUB_OFFLINE=1): {_EXITS}."
            yield of_option(module.option, path, consequence, repair)
    elif not own_image:
        consequence = f"it is neither a folder of the container nor an id on the hub: {_EXITS} (No adapter found)."
        yield of_option(module.option, path, consequence, repair)


def _words(value: object) -> list[str]:
    """Words of the command line, empty ones left out as the parser does."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return [word for each in values if (word := as_word(each)) not in ("", "null", "None")]


def _module(word: str) -> tuple[str, str] | None:
    """Name and path of one word, as the parser reads it; None where it refuses the word."""
    if "=" in word and "," not in word:
        name, _, path = word.partition("=")
        return name, path
    try:
        read = json.loads(word)
    except ValueError:
        return None
    if not isinstance(read, dict) or not {"name", "path"} <= read.keys() <= _KEYS:
        return None
    return str(read["name"] or ""), str(read["path"] or "")
