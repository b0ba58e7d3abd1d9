"""Tensors of a LoRA adapter against the model that it is loaded beside: names, ranks, widths, layers. Pure.

Owns what only the header of `adapter_model.safetensors` tells. Each refusal was compared with vLLM 0.32.0 on a CPU with
a tiny Gemma 4: it ends the start for other widths and names, and loads in silence what has layers that the model lacks,
or another rank than its configuration, which is scaled wrongly. Leaves the configuration to bezel.weights.adapter.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LONGEST_HEADER = 8_000_000
"""Bytes of a header that is read; one of the largest adapters, of every expert's layers, has a quarter of it."""
_NAME = re.compile(r"(?P<module>.+)\.lora_(?:embedding_)?(?P<side>[AB])(?:\.weight)?")
_LAYER = re.compile(r"\blayers\.(\d+)\.")
# Towers of images and audio have layers and widths of their own.
_TOWER = re.compile(r"vision|visual|audio|tower|projector")
_READS_HIDDEN = frozenset({"q_proj", "k_proj", "v_proj", "qkv_proj", "gate_proj", "up_proj", "gate_up_proj"})
_WRITES_HIDDEN = frozenset({"o_proj", "down_proj"})


@dataclass(frozen=True, slots=True)
class BaseModel:
    """The model that adapters are loaded beside: its hub id ("" without one), hidden size, and number of layers."""

    hub_id: str
    hidden_size: int
    layers: int


def header_length(start: bytes, size: int) -> int:
    """Return the length of a header, 0 where the file cannot have one that is read.

    Args:
        start: The first eight bytes of the file.
        size: Bytes of the whole file.
    """
    length = int.from_bytes(start[:8], "little") if len(start) >= 8 else 0
    return length if 8 + length <= size and length <= LONGEST_HEADER else 0


def tensor_problems(header: bytes, config: Mapping[str, Any], base: BaseModel) -> list[str]:
    """Return why an adapter does not fit a model, in words for the user; an empty list where it does.

    Args:
        header: Of its weights, as JSON; empty where the file has none.
        config: Its configuration, which vLLM takes.
        base: The model.
    """
    try:
        tensors = json.loads(header)
        shapes = {str(name): tuple(row["shape"]) for name, row in tensors.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError):
        return ["its weights are not a whole file of safetensors"]
    if not shapes:
        return ["its weights have no tensors"]
    return list(dict.fromkeys(_problems(shapes, config, base)))


def base_warning(config: Mapping[str, Any], base: BaseModel) -> str:
    """Return a warning where an adapter names another model as its base, "" where it does not.

    A quantised form of the base serves the adapter, so names that begin alike are the same model.
    """
    named = str(config.get("base_model_name_or_path") or "")
    if not named or not base.hub_id:
        return ""
    ours, theirs = (_plain(name) for name in (base.hub_id, named))
    if ours.startswith(theirs) or theirs.startswith(ours):
        return ""
    return f"it was made for {named[:96]}, and the server has {base.hub_id}: vLLM compares no names, and loads it"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.rstrip("/").rpartition("/")[2].lower())


def _problems(shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any], base: BaseModel) -> Iterator[str]:
    for name, shape in shapes.items():
        match = _NAME.fullmatch(name)
        if match is None:
            yield f"vLLM does not support its tensor {name[:96]}"
            continue
        module, is_first = match["module"], match["side"] == "A"
        if len(shape) != 2 or _TOWER.search(module):
            continue
        layer = _LAYER.search(module)
        if layer and int(layer[1]) >= base.layers:
            yield f"it has tensors of layer {layer[1]}, and the model has {base.layers}: it was made for another model"
            return
        kind = module.rpartition(".")[2]
        reads = is_first and kind in _READS_HIDDEN
        writes = not is_first and kind in _WRITES_HIDDEN
        width = shape[1] if reads else shape[0] if writes else None
        if layer and width not in (None, base.hidden_size):
            yield f"its {kind} is {width} wide, and the model {base.hidden_size}: it was made for another model"
            return
        if is_first and not config.get("rank_pattern") and shape[0] != config.get("r"):
            yield f"its tensors have rank {shape[0]}, and r of its configuration is {config.get('r')}"
            return
