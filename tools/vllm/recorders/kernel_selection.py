"""Answers of vLLM's own selection of kernels for the encodings of Gemma 4, on GPUs that are stood in for.

    .venv/bin/python -m tools.vllm.recorders.kernel_selection PYTHON MODEL

PYTHON is the interpreter of a real vLLM 0.32.0 for CPUs, with torchvision (see tools/vllm/starts/compare.py), MODEL a
folder with Gemma 4's tokenizer. Writes the catalogue's `vllm/start_relations/kernels.json`: option, encoding,
capability, name of the kernel, and the error of a start with it. No server is started.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from bezel_catalog import vllm_options
from bezel_catalog.loader import DATA
from tests.support.start_relations.cases import Case, shipped_plan
from tests.support.start_relations.real import ask, question, seed_real_models

_RELEASE = "0.32.0"
# By capability: a stack on such a GPU. The 4-bit form of the model with experts has no published folder.
_STACKS = {"moe-backend": {"8.9": "l4-26b-qat", "12.0": "rtx6000-26b"}, "linear-backend": {"8.9": "l4-qat"}}
_STACKS["linear-backend"]["12.0"] = "rtx6000-31b"
_MODELS = {"moe-backend": "gemma-4-26b-a4b-it", "linear-backend": "gemma-4-12b-it"}
_FORMS = {"moe-backend": {"w4a16": "-w4a16"}, "linear-backend": {"w4a16": "-qat-w4a16"}}

_PACKAGES = ("humming",)  # depends on the image, not on the model or the GPU


def _case(option: str, encoding: str, capability: str, name: str) -> Case:
    form = {"bf16": "", "fp8": "-fp8", **_FORMS[option]}[encoding]
    path = shipped_plan("l4-26b-qat").weights.path
    changes = {"weights": {"path": path}} if option == "moe-backend" and encoding == "w4a16" else {}
    stack = _STACKS[option][capability]
    return Case("kernel", stack, {option: name}, refused=False, model=_MODELS[option] + form, changes=changes)


def main() -> None:
    """Ask of every kernel, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    parser.add_argument("model", type=Path)
    options = parser.parse_args()
    choices = {row.name: row.choices for row in vllm_options(_RELEASE).options if row.name in _STACKS}
    asked = [
        (option, encoding, capability, name)
        for option in _STACKS
        for encoding in ("w4a16", "fp8", "bf16")
        for capability in ("8.9", "12.0")
        for name in sorted(set(choices[option]) - {"auto", *_PACKAGES})
    ]
    with tempfile.TemporaryDirectory() as made:
        seed_real_models(Path(made), options.model)
        verdicts = ask(options.python, [question(_case(*each), Path(made)) for each in asked])
    refusals: dict[str, Any] = {}
    for (option, encoding, capability, name), verdict in zip(asked, verdicts, strict=True):
        place = refusals.setdefault(option, {}).setdefault(encoding, {}).setdefault(capability, {})
        if verdict["verdict"] == "refused" and "pip install" not in verdict["said"]:
            place[name] = verdict["said"]
    file = DATA / "vllm" / "start_relations" / "kernels.json"
    file.write_text(json.dumps(refusals, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
