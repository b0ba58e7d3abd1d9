"""Architectures that a vLLM knows, and the defaults of the configuration classes that it reads them by.

    PYTHON tools/vllm/recorders/architectures.py FOLDER

PYTHON is the interpreter of any vLLM, one for CPUs as well: nothing is loaded on a device. Two files are written into
FOLDER, the catalogue's `vllm/architectures`: RELEASE.json, the release as the installed vLLM states it, with each
architecture's kinds of tasks, its module and what its class says of itself; and configurations.json, by `model_type`
the defaults and other names of the fields that a memory plan reads. Imports nothing of this project.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

KINDS = {
    "_TEXT_GENERATION_MODELS": "text",
    "_EMBEDDING_MODELS": "embedding",
    "_LATE_INTERACTION_MODELS": "late-interaction",
    "_REWARD_MODELS": "reward",
    "_TOKEN_CLASSIFICATION_MODELS": "token-classification",
    "_SEQUENCE_CLASSIFICATION_MODELS": "classification",
    "_MULTIMODAL_MODELS": "multimodal",
    "_SPECULATIVE_DECODING_MODELS": "draft",
    "_TRANSFORMERS_SUPPORTED_MODELS": "transformers",
    "_TRANSFORMERS_BACKEND_MODELS": "transformers",
}
TRAITS = ("is_hybrid", "is_attention_free", "is_text_generation_model", "is_pooling_model", "supports_multimodal")
FIELD = re.compile(
    r"layer|head|kv|window|chunk|hidden|intermediate|ffn|dim|d_model|rank|state|conv|mamba|expan|group|expert|topk|"
    r"top_k|interval|pattern|block|period|offset|vocab|position|tie|max_|n_|seq|attention|index|ratio|kernel|parallel|"
    r"multi_query|sinks|pool|inner|size|types|moe|causal|decoder"
)
IGNORED = re.compile(
    r"^_|dropout|output_|chunk_size_feed|_token_id|_act$|activation|initializer|_std|bias|softcap|scalar|eps|loss|"
    r"image_|video_|audio_|vision_|problem_type|is_encoder|resid|scale"
)


def architectures(registry: Any) -> dict[str, Any]:
    """Each architecture of the registry: its kinds of tasks, its module, its class and that class's traits."""
    rows: dict[str, Any] = {}
    for table, kind in KINDS.items():
        for name, (module, class_name) in getattr(registry, table, {}).items():
            row = rows.setdefault(name, {"kinds": [], "module": module.removeprefix("vllm.models.")})
            row["class"] = class_name
            if kind not in row["kinds"]:
                row["kinds"].append(kind)
    for name, row in rows.items():
        try:
            info = registry.ModelRegistry.models[name].inspect_model_cls()
        except Exception as error:  # noqa: BLE001 - a class that this machine cannot import has no traits
            row["not_imported"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            continue
        row["traits"] = [trait for trait in TRAITS if getattr(info, trait)]
        row["attention"] = info.attn_type
    return dict(sorted(rows.items()))


def configurations() -> dict[str, Any]:
    """Defaults and attribute maps of the configuration classes, by model type."""
    automatic: Any = importlib.import_module("transformers.models.auto.configuration_auto")
    own: Any = importlib.import_module("vllm.transformers_utils.config")
    rows: dict[str, Any] = {}
    for model_type in sorted({*automatic.CONFIG_MAPPING_NAMES, *own._CONFIG_REGISTRY}):  # noqa: SLF001 - named nowhere else
        source = own._CONFIG_REGISTRY if model_type in own._CONFIG_REGISTRY else automatic.CONFIG_MAPPING  # noqa: SLF001
        try:
            row = configuration(source[model_type])
        except Exception as error:  # noqa: BLE001 - a class of a package that is not installed, or without defaults
            print(model_type, type(error).__name__, str(error)[:100], file=sys.stderr)
            continue
        if row:
            rows[model_type] = row
    return rows


def configuration(kind: Any) -> dict[str, Any]:
    """Defaults, parts and attribute map of one configuration class."""
    values = vars(kind())
    row = {
        "defaults": {
            key: value
            for key, value in values.items()
            if FIELD.search(key) and not IGNORED.search(key) and plain(value)
        },
        "parts": {key: part.model_type for key, part in values.items() if hasattr(part, "model_type")},
        "names": dict(kind.attribute_map),
    }
    return {key: value for key, value in row.items() if value}


def plain(value: Any) -> bool:
    """Whether a default is a number, a truth value, a text or a short list of such; layers of the default are not."""
    if isinstance(value, list | tuple):
        return len(value) <= 8 and all(isinstance(item, int | float | str) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


def main() -> None:
    """Write both files."""
    os.environ.update({"VLLM_LOGGING_LEVEL": "CRITICAL", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"})
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    vllm = importlib.import_module("vllm")
    registry: Any = importlib.import_module("vllm.model_executor.models.registry")
    registry._run_in_subprocess = lambda function: function()  # noqa: SLF001 - a process each takes half an hour
    release = vllm.__version__.partition("+")[0]
    transformers = importlib.import_module("transformers").__version__
    content = {
        "vllm": release,
        "architectures": architectures(registry),
        "removed": registry._PREVIOUSLY_SUPPORTED_MODELS,  # noqa: SLF001
        "plugins": registry._OOT_SUPPORTED_MODELS,  # noqa: SLF001
    }
    (folder / f"{release}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    read = {"transformers": transformers, "configurations": configurations()}
    (folder / "configurations.json").write_text(json.dumps(read, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
