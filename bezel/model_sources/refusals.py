"""Refusals of places that hold no model for vLLM: other formats, adapters, other libraries, code of its own. Pure.

Each refusal has what was found, what would follow, and the repair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.model_sources.places import ModelRefusedError
from bezel.weights.adapter import ADAPTER_CONFIG
from bezel_base.errors import Problem
from bezel_catalog.architectures.configuration import recorded_configurations
from bezel_catalog.architectures.registry import known_architecture, recorded_releases, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG = "config.json"
_PICKLES = (".bin", ".pt", ".pth")
_NOTHING = "nothing was written."


def check_files(name: str, files: Mapping[str, int]) -> None:
    """Refuse a folder by the names of its files.

    Args:
        name: Of the place.
        files: Sizes by name.

    Raises:
        ModelRefusedError: It is not a model in safetensors.
    """
    top = [file for file in files if "/" not in file]
    weights = [file for file in top if file.endswith(".safetensors") and not file.startswith("adapter_")]
    if ADAPTER_CONFIG in files and (CONFIG not in files or not weights):
        consequence = f"is a LoRA adapter and no model ({ADAPTER_CONFIG}): vLLM loads it beside one; {_NOTHING}"
        repair = (
            "name the model that it was made for (base_model_name_or_path in it); a stack serves the adapter by "
            "`bezel:adapters: [{name: NAME, source: OWNER/NAME, rank: 16}]`."
        )
    elif "model_index.json" in files:
        consequence = f"is a pipeline of the diffusers library (model_index.json), no language model; {_NOTHING}"
        repair = "name a model of the transformers library, which vLLM serves."
    elif not files:
        consequence, repair = f"has no files, so there is nothing to plan; {_NOTHING}", "correct the name."
    elif weights and CONFIG in files:
        return
    elif not weights and (ggufs := sorted(file for file in files if file.endswith(".gguf"))):
        consequence = (
            f"has its weights in GGUF ({ggufs[0]}), which is slow in vLLM, and whose tensors this cannot plan; "
            f"{_NOTHING}"
        )
        repair = "name the repository that it was converted from, or one in safetensors (e.g. AWQ, GPTQ, w4a16)."
    elif not weights and (pickles := sorted(file for file in top if file.endswith(_PICKLES))):
        consequence = (
            f"has its weights in a format only that can run code when it is loaded ({pickles[0]}): the copy into a "
            f"bucket leaves it out, so vLLM would find no weights; {_NOTHING}"
        )
        repair = "name a revision in safetensors (the hub's SFconvertbot makes one), or convert it."
    elif CONFIG not in files:
        consequence = f"has no {CONFIG}, so vLLM cannot load it and its memory cannot be planned; {_NOTHING}"
        repair = f"name the folder that holds {CONFIG} beside the weights."
    else:
        consequence = f"has no weights (*.safetensors) beside {CONFIG}; {_NOTHING}"
        repair = "name a complete model."
    raise ModelRefusedError(Problem(name, None, consequence, repair))


def check_config(name: str, config: Mapping[str, Any]) -> None:
    """Refuse a configuration that is none of a model of the transformers library.

    Args:
        name: Of the place.
        config: Of config.json.

    Raises:
        ModelRefusedError: It names no architecture, or another library.
    """
    where = f"{name}: {CONFIG}"
    if "_diffusers_version" in config or "_class_name" in config:
        consequence = f"it is of the diffusers library ({config.get('_class_name')}), no language model; {_NOTHING}"
        raise ModelRefusedError(Problem(where, None, consequence, "name a model of the transformers library."))
    architectures = config.get("architectures")
    named = isinstance(architectures, list) and architectures and all(isinstance(each, str) for each in architectures)
    if not named:
        consequence = f"it names no architecture, by which vLLM chooses how to load the weights; {_NOTHING}"
        repair = 'add the class of the model, e.g. "architectures": ["LlamaForCausalLM"].'
        raise ModelRefusedError(Problem(f"{where}: architectures", architectures, consequence, repair))


def check_class(where: str, config: Mapping[str, Any]) -> None:
    """Refuse a model that no class of vLLM loads, or that needs code of its own.

    Args:
        where: Of the configuration, for messages.
        config: Of config.json.

    Raises:
        ModelRefusedError: No recorded release of vLLM has a class for it, or its own code reads its configuration.
    """
    names = [str(name) for name in config["architectures"]]
    releases = recorded_releases()
    has_code = isinstance(config.get("auto_map"), dict)
    served = [name for name in names if any(known_architecture(name, release) for release in releases)]
    if not served:
        reason = refusal(names[0], releases[-1])
        code = ", and it brings code of its own (auto_map), which is not run (trust_remote_code)" if has_code else ""
        consequence = f"{reason}{code}: the server would not start; {_NOTHING}"
        repair = "name a model of an architecture that vLLM has, or one converted to it."
        raise ModelRefusedError(Problem(f"{where}: architectures", ", ".join(names), consequence, repair))
    model_type = str(config.get("model_type") or "")
    if has_code and "AutoConfig" in config["auto_map"] and model_type not in recorded_configurations():
        consequence = (
            f"its configuration is read by code of the repository (model_type {model_type or 'none'}), which vLLM runs "
            f"with trust_remote_code only: anyone who changes the repository runs code on the server; {_NOTHING}"
        )
        repair = "name a copy of the model in the form of the transformers library (without auto_map)."
        raise ModelRefusedError(Problem(f"{where}: auto_map", config["auto_map"]["AutoConfig"], consequence, repair))


def is_outside(name: str) -> bool:
    """Whether the name of a file leads out of its folder."""
    return name.startswith("/") or "\\" in name or any(part in {"", ".", ".."} for part in name.split("/"))
