"""Folder of a LoRA adapter: the files that vLLM loads, and what its configuration may say. Pure.

Source: vLLM 0.32.0, lora/peft_helper.py (the configuration) and lora/lora_model.py (the files). Leaves the weights
themselves, whose module names must be those of the model, to vLLM.
"""

import json
from collections.abc import Mapping
from typing import Any

ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
_WEIGHTS = (ADAPTER_WEIGHTS, "adapter_model.bin", "adapter_model.pt")
_REQUIRED = ("lora_alpha", "r", "target_modules")
_INITS = ("gaussian", "eva", "orthogonal", "mica", "lora_ga")
_SAVED = ("classifier", "score")
# Features of PEFT that vLLM refuses, by key.
_FEATURES = ("use_dora", "lora_bias", "alora_invocation_tokens", "layer_replication", "use_bdlora", "use_qalora")


def missing_adapter_parts(files: Mapping[str, int]) -> list[str]:
    """Return what a folder lacks to be an adapter, in words for the user; an empty list where it is complete.

    Args:
        files: Size in bytes of each file, by its name relative to the folder.
    """
    problems = [] if ADAPTER_CONFIG in files else [f"{ADAPTER_CONFIG} is missing"]
    weights = [name for name in _WEIGHTS if name in files]
    if not weights:
        problems.append(f"there are no weights ({_WEIGHTS[0]})")
    problems += [f"{name} is empty" for name in (ADAPTER_CONFIG, *weights[:1]) if files.get(name) == 0]
    return problems


def adapter_problems(content: bytes | str, max_rank: int) -> list[str]:
    """Return why vLLM refuses an adapter's configuration, in words for the user; an empty list where it does not.

    Args:
        content: Of its file.
        max_rank: The server's max-lora-rank.
    """
    try:
        config = json.loads(content)
    except ValueError:
        return [f"{ADAPTER_CONFIG} is not JSON"]
    if not isinstance(config, dict):
        return [f"{ADAPTER_CONFIG} is not a JSON object"]
    if absent := [key for key in _REQUIRED if key not in config]:
        return [f"{ADAPTER_CONFIG} has no {', '.join(absent)}"]
    pattern = config.get("rank_pattern") or {}
    ranks = [config["r"], *(pattern.values() if isinstance(pattern, dict) else [pattern])]
    if not all(isinstance(rank, int) and rank > 0 for rank in ranks):
        wrong = next(rank for rank in ranks if not (isinstance(rank, int) and rank > 0))
        return [f"{ADAPTER_CONFIG}: expected ranks above 0, got {str(wrong)[:40]!r}"]
    if not isinstance(config["lora_alpha"], int | float):
        return [f"{ADAPTER_CONFIG}: expected a number as lora_alpha, got {str(config['lora_alpha'])[:40]!r}"]
    problems = [f"its rank is {max(ranks)}, above max-lora-rank={max_rank}"] if max(ranks) > max_rank else []
    problems += [f"vLLM does not support {key}" for key in _FEATURES if config.get(key)]
    return problems + list(_of_features(config))


def _of_features(config: Mapping[str, Any]) -> list[str]:
    problems = []
    saved = config.get("modules_to_save") or []
    if not isinstance(saved, list) or any(name not in _SAVED for name in saved):
        problems.append("vLLM does not support modules_to_save of a language model")
    init = config.get("init_lora_weights", True)
    if isinstance(init, str) and init.lower() not in _INITS:
        problems.append(f"vLLM does not support init_lora_weights={init[:40]}")
    if config.get("bias", "none") != "none":
        problems.append("vLLM does not support an adapter's bias")
    return problems
