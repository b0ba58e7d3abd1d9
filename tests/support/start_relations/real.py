"""Cases of relations as a real vLLM's own classes judge them: machine, model's folder and arguments of each.

The folders have no weights. Configuration and shapes are the catalogue's; what transformers reads beside them, and
nothing of ours does, is written here as the published checkpoints have it (google/gemma-4-*: config.json and
processor_config.json). The tokenizer is that of a tiny Gemma 4, whose special tokens are Gemma 4's.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from bezel.planner import LeasePlan
from bezel_catalog import models
from bezel_simulated_vllm.synthetic_weights import model_files
from tests.support.start_relations.cases import ROOT, Case, command, model_folders, shipped_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_SECONDS = 3600
_GPUS = {
    "nvidia-l4": {"capability": [8, 9], "name": "NVIDIA L4", "memory_gib": 22.03},
    "nvidia-rtx-pro-6000": {
        "capability": [12, 0],
        "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "memory_gib": 94.97,
    },
}
# Of compressed-tensors: what is published beside the form's name.
_SCHEMES = {
    "w4a16": {
        "weights": {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 32},
        "input_activations": None,
    },
    "fp8": {
        "weights": {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel"},
        "input_activations": {
            "num_bits": 8,
            "type": "float",
            "symmetric": True,
            "strategy": "token",
            "dynamic": True,
        },
    },
}
_TOKENS = {"image": ("<|image|>", "<|image>", "<image|>"), "audio": ("<|audio|>", "<|audio>", "<audio|>")}


def seed_real_models(folder: Path, tiny: Path) -> None:
    """Write the models' folders.

    Args:
        folder: where they are written.
        tiny: a folder with Gemma 4's tokenizer.
    """
    for path, name in model_folders().items():
        made = folder / path
        made.mkdir(parents=True, exist_ok=True)
        for file, content in _files(name, tiny).items():
            (made / file).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def _files(name: str, tiny: Path) -> dict[str, Any]:
    config = json.loads(model_files(name)["config.json"])
    unified = "unified" in config["model_type"]
    kind = "gemma4_unified" if unified else "gemma4"
    row = next((row for row in models().values() if name in (row.id, row.hub_id)), None)
    if quantised := config.get("quantization_config"):
        groups = {"group_0": {"targets": ["Linear"], "output_activations": None, **_SCHEMES[row.encoding]}}
        quantised |= {"config_groups": groups, "ignore": ["lm_head", "re:.*(vision|audio).*"], "kv_cache_scheme": None}
    if "vision_config" in config:
        tokens = "num_soft_tokens" if unified else "default_output_length"
        config["vision_config"] = {"model_type": f"{kind}_vision", tokens: 280}
    if "audio_config" in config:
        config["audio_config"] = {"model_type": f"{kind}_audio"}
    if unified and row:
        config["architectures"] = ["Gemma4UnifiedForConditionalGeneration"]
        config["text_config"]["model_type"] = "gemma4_unified_text"
    prefix = "Gemma4Unified" if unified else "Gemma4"
    processor = {
        "processor_class": f"{prefix}Processor",
        "image_processor": {"image_processor_type": f"{prefix}ImageProcessor"},
        "video_processor": {"video_processor_type": f"{prefix}VideoProcessor"},
        "feature_extractor": {"feature_extractor_type": f"{prefix}AudioFeatureExtractor"},
        **({} if unified else {"image_seq_length": 280, "audio_seq_length": 750}),
    }
    return {"config.json": config, "processor_config.json": processor, **_tokenizer(tiny)}


def _tokenizer(tiny: Path) -> dict[str, Any]:
    """Gemma 4's special tokens, with those of images and clips that a text model lacks."""
    files = {
        name: (tiny / name).read_text(encoding="utf-8") for name in ("chat_template.jinja", "generation_config.json")
    }
    tokenizer = json.loads((tiny / "tokenizer.json").read_text(encoding="utf-8"))
    settings = json.loads((tiny / "tokenizer_config.json").read_text(encoding="utf-8"))
    known_tokens = {token["content"] for token in tokenizer["added_tokens"]}
    following = max(*tokenizer["model"]["vocab"].values(), *(token["id"] for token in tokenizer["added_tokens"])) + 1
    for kind, (one, begin, end) in _TOKENS.items():
        settings |= {f"{kind}_token": one, f"bo{kind[0]}_token": begin, f"eo{kind[0]}_token": end}
        for token in (begin, end):
            if token not in known_tokens:
                tokenizer["added_tokens"].append({**tokenizer["added_tokens"][0], "id": following, "content": token})
                following += 1
    return {**files, "tokenizer.json": tokenizer, "tokenizer_config.json": settings}


def question(case: Case, folder: Path) -> dict[str, Any]:
    """Return a case as tools/vllm/starts/verdicts.py reads it.

    Args:
        case: to be judged.
        folder: where `seed_real_models` wrote the models.
    """
    arguments, variables = command(case)
    return {"words": [_local(word, folder) for word in arguments], "variables": variables, "device": _device(case)}


def _local(word: str, folder: Path) -> str:
    for mount in ("/mnt/models", "/dev/shm/models", "/var/lib/bezel/models"):  # noqa: S108 - of containers
        word = word.replace(mount, str(folder))
    return word


def _device(case: Case) -> dict[str, Any]:
    plan = shipped_plan(case.stack)
    if not isinstance(plan, LeasePlan):
        return {**_GPUS[plan.service.accelerator], "count": plan.service.accelerator_count}
    hardware = plan.terms.hardware
    return {**_GPUS[hardware.gpu.id], "count": hardware.chips} if hardware.gpu else {"tpu": hardware.chips}


def ask(python: str, questions: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the verdicts of the classes of that interpreter's vLLM."""
    done = subprocess.run(
        [python, "-m", "tools.vllm.starts.verdicts"],
        input=json.dumps(list(questions)),
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        check=True,
        timeout=_SECONDS,
    )
    verdicts: list[dict[str, str]] = json.loads(done.stdout)
    return verdicts
