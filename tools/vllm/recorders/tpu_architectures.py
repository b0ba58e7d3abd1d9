"""Record what tpu-inference has definitions and kernels for: architectures of its own, and methods of quantisation.

    .venv/bin/python tools/vllm/recorders/tpu_architectures.py PACKAGE VERSION OUT

PACKAGE is the folder `tpu_inference` of the release VERSION, unpacked from its wheel; nothing of it is imported, since
it needs a TPU. OUT is the catalogue's `vllm/architectures/tpu-inference-VERSION.json`.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

_REGISTRY, _PREFERRED = "_MODEL_REGISTRY", "_VLLM_PREFERRED_ARCHITECTURES"


def constants(tree: ast.AST) -> list[str]:
    """The texts under a node, in their order."""
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def native_architectures(loader: ast.Module) -> list[str]:
    """Keys that are assigned in the registry of models written for JAX."""
    return [
        key
        for node in ast.walk(loader)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == _REGISTRY
        for key in constants(target.slice)
    ]


def assigned_texts(module: ast.Module, name: str) -> list[str]:
    """Texts of the value of a name with a type."""
    return [
        text
        for node in ast.walk(module)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name
        for text in (constants(node.value) if node.value else [])
    ]


def main(package: str, version: str, out: str) -> None:
    """Write the file."""
    folder = Path(package)
    loader = ast.parse((folder / "models" / "common" / "model_loader.py").read_text(encoding="utf-8"))
    platform = ast.parse((folder / "platforms" / "tpu_platform.py").read_text(encoding="utf-8"))
    content = {
        "version": version,
        "native": sorted(native_architectures(loader)),
        "through_vllm": sorted(assigned_texts(loader, _PREFERRED)),
        "quantisations": sorted(assigned_texts(platform, "supported_quantization")),
    }
    Path(out).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
