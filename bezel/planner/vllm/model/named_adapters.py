"""LoRA adapters of the setting `adapters`: the options of vLLM that serve them, and what is refused of the setting.

Owns names, folders and sources of adapters, and the room that is reserved for them: `max-loras`, `max-lora-rank`,
`max-cpu-loras` (vLLM 0.32.0: config/lora.py). Adapters that a stack file names by vLLM's own options are those of
bezel.planner.vllm.adapter_modules; what an adapter's files say is looked at in the bucket (bezel.weights.adapter).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bezel.planner.base.names import is_folder
from bezel.planner.base.problems import EXITS, of_option, setting
from bezel.planner.vllm.adapter_modules import MODULES
from bezel.planner.vllm.arguments import DEFAULT_SEQS, typed_values
from bezel_base.errors import NOT_SET, Problem
from bezel_catalog.architectures.registry import recorded_releases, takes_adapters
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bezel.planner.base.settings import Adapter
    from bezel.planner.vllm.arguments import Argument
    from bezel_catalog import Model, VllmOptions

_FOLDER = "adapters"
_HUB = "hf:"
_SOURCE = re.compile(r"[\w.-]+/[\w.-]+(?:@[\w./-]+)?")
_RANK = "max-lora-rank"
ADAPTER_OPTIONS = frozenset({"enable-lora", MODULES, "max-loras", _RANK, "max-cpu-loras"})
"""Options that the setting decides."""
Place = Literal["mounted", "hub", "streamed", "machine", "tpu"]
_UNSERVED = {
    "streamed": (
        "with runai-streamer no bucket is mounted: vLLM reads adapters from folders, and exits without them.",
        f"set `{setting('weights.loading')}: fuse-prefetch`, or remove the adapters.",
    ),
    "machine": (
        "only the model's own folder is copied from the bucket to a leased machine: vLLM exits without its adapters.",
        f"set `{setting('weights.loading')}: hub` and the source of each adapter, or remove the adapters.",
    ),
    "tpu": ("adapters on a TPU are not known to work, and their memory there cannot be planned.", "remove them."),
}


@dataclass(frozen=True, slots=True)
class AdapterPlace:
    """Where a stack's adapters come from: the kind of place, and the mount of the bucket, "" without one."""

    kind: Place
    mount: str = ""

    @property
    def is_served(self) -> bool:
        """Whether vLLM can load adapters from there."""
        return self.kind in ("mounted", "hub")


def adapter_folder(adapter: Adapter) -> str:
    """The adapter's folder in the bucket."""
    return (adapter.path or f"{_FOLDER}/{adapter.name}").strip("/")


def source_folders(adapters: Sequence[Adapter]) -> dict[str, str]:
    """The bucket's folders of the adapters that are copied from the hub, each with its id there."""
    return {adapter_folder(each): each.source.removeprefix(_HUB) for each in adapters if each.source}


def adapter_options(
    adapters: Sequence[Adapter],
    place: AdapterPlace,
    chosen: Mapping[str, Argument | None],
    options: VllmOptions | None,
) -> dict[str, object]:
    """Default options that serve the adapters; none where they cannot be served.

    Each batch may hold a sequence of every adapter, up to as many as it has sequences; adapters beyond that stay in the
    host's memory.

    Args:
        adapters: of the stack file.
        place: where they come from.
        chosen: the stack file's own options.
        options: the recorded options of the image's vLLM.
    """
    if not adapters or options is None or not place.is_served:
        return {}
    values = typed_values(chosen)
    batch = integer(values, "max-loras") or min(len(adapters), integer(values, "max-num-seqs") or DEFAULT_SEQS)
    planned: dict[str, object] = {
        "enable-lora": True,
        MODULES: [f"{each.name}={_location(each, place)}" for each in adapters],
        "max-loras": batch,
        _RANK: _reserved_rank(adapters, options),
    }
    if len(adapters) > batch:
        planned["max-cpu-loras"] = len(adapters)
    return planned


def check_adapters(
    adapters: Sequence[Adapter],
    place: AdapterPlace,
    chosen: Mapping[str, Argument | None],
    *,
    served: Sequence[str],
    model_folder: str,
) -> Iterator[Problem]:
    """Refuse adapters that the server could not load, and options beside them that contradict them.

    Args:
        adapters: of the stack file.
        place: where they come from.
        chosen: the stack file's own options.
        served: names of the model.
        model_folder: the model's folder in the bucket.
    """
    if not adapters:
        return
    if not place.is_served:
        consequence, repair = _UNSERVED[place.kind]
        yield Problem(setting("adapters"), ", ".join(each.name for each in adapters), consequence, repair)
        return
    yield from _check_names(adapters, served)
    for number, adapter in enumerate(adapters):
        where = f"adapters.{number}"
        yield from _check_source(adapter, where)
        yield from _check_hub(adapter, where) if place.kind == "hub" else _check_folder(adapter, where, model_folder)
    yield from _check_options(adapters, chosen)


def check_class(adapters: Sequence[Adapter], model: Model, release: str, *, enabled: bool) -> Iterator[Problem]:
    """Refuse adapters for a model whose class in vLLM takes none.

    Args:
        adapters: of the stack file.
        model: the checkpoint.
        release: of vLLM, as its options are recorded.
        enabled: whether the options enable adapters.
    """
    names = [str(name) for name in model.config.get("architectures") or ()]
    if not enabled or not names or release not in recorded_releases() or takes_adapters(names[0], release):
        return
    consequence = f"the class of {names[0]} in vLLM {release} takes no adapters; {EXITS}"
    if adapters:
        listed = ", ".join(each.name for each in adapters)
        yield Problem(setting("adapters"), listed, consequence, "remove them, or merge the adapter into the weights.")
    else:
        yield of_option("enable-lora", True, consequence, "remove it, or merge the adapter into the weights.")


def _location(adapter: Adapter, place: AdapterPlace) -> str:
    if place.kind == "hub":
        return (adapter.source or "").removeprefix(_HUB)
    return f"{place.mount}/{adapter_folder(adapter)}"


def _reserved_rank(adapters: Sequence[Adapter], options: VllmOptions) -> int:
    """The smallest rank that the release takes and that holds each adapter; at least vLLM's default."""
    largest = max(16, *(each.rank for each in adapters))
    match = options.find(f"--{_RANK}")
    choices = sorted(int(choice) for choice in match[0].choices or ()) if match else []
    return next((choice for choice in choices if choice >= largest), largest)


def _check_names(adapters: Sequence[Adapter], served: Sequence[str]) -> Iterator[Problem]:
    names: set[str] = set()
    for number, adapter in enumerate(adapters):
        if adapter.name in served or adapter.name in names:
            other = "the model's own name" if adapter.name in served else "the name of another adapter"
            consequence = f"it is {other}, and vLLM exits after it has loaded the model."
            yield Problem(setting(f"adapters.{number}.name"), adapter.name, consequence, "choose another name.")
        names.add(adapter.name)


def _check_source(adapter: Adapter, where: str) -> Iterator[Problem]:
    source = adapter.source
    if source is None or (_SOURCE.fullmatch(source.removeprefix(_HUB)) and ".." not in source):
        return
    if "://" in source:
        consequence = "only adapters of the Hugging Face hub have a source."
        repair = f"copy the adapter into the stack's bucket, and write `path: FOLDER` in `{setting(where)}`."
    else:
        consequence = "it is not an id on the Hugging Face hub: no adapter can be copied or downloaded."
        repair = "write OWNER/NAME or OWNER/NAME@REVISION."
    yield Problem(setting(f"{where}.source"), source, consequence, repair)


def _check_hub(adapter: Adapter, where: str) -> Iterator[Problem]:
    if adapter.source is None:
        consequence = "the server downloads its files from the hub, and this adapter has no id there."
        yield Problem(setting(f"{where}.source"), NOT_SET, consequence, "write `source: OWNER/NAME`.")
    elif "@" in adapter.source:
        consequence = "vLLM downloads adapters from the default branch: it takes no revision of one."
        repair = f"leave the revision out, or load from the bucket (`{setting('weights.loading')}: fuse-prefetch`)."
        yield Problem(setting(f"{where}.source"), adapter.source, consequence, repair)
    if adapter.path is not None:
        consequence = "no bucket is read with `weights.loading: hub`: it would have no effect."
        yield Problem(setting(f"{where}.path"), adapter.path, consequence, "remove it.")


def _check_folder(adapter: Adapter, where: str, model_folder: str) -> Iterator[Problem]:
    key, folder = setting(f"{where}.path"), adapter_folder(adapter)
    if not is_folder(folder):
        consequence = f"it is not a folder inside the bucket: vLLM finds no adapter; {EXITS}"
        yield Problem(key, adapter.path, consequence, f"write a folder such as {_FOLDER}/{adapter.name}.")
    elif folder == model_folder:
        consequence = f"it is the model's own folder, which holds no adapter; {EXITS}"
        yield Problem(key, adapter.path, consequence, f"write a folder such as {_FOLDER}/{adapter.name}.")


def _check_options(adapters: Sequence[Adapter], chosen: Mapping[str, Argument | None]) -> Iterator[Problem]:
    values = typed_values(chosen)
    both = f"`{setting('adapters')}` sets this option too, and the stack file's value would take its place: "
    if MODULES in chosen:
        consequence = f"{both}adapters of one of them would be missing."
        yield of_option(MODULES, values.get(MODULES), consequence, f"write all adapters in `{setting('adapters')}`.")
    if "enable-lora" in chosen and values.get("enable-lora") is not True:
        consequence = f"{both}no adapter can be loaded without it; {EXITS}"
        yield of_option("enable-lora", values.get("enable-lora"), consequence, "remove it.")
    if _RANK in chosen:
        # Without a value vLLM's default holds, which is 16.
        rank = integer(values, _RANK, 16)
        larger = [each for each in adapters if rank is not None and each.rank > rank]
        if larger:
            consequence = (
                f"the rank of {larger[0].name} is {larger[0].rank}: vLLM refuses it after it has loaded the model."
            )
            yield of_option(_RANK, values.get(_RANK), consequence, f"remove it, or write {larger[0].rank} or more.")
