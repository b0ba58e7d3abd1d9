"""Model classes of a vLLM that take no LoRA adapters: those that do not have `SupportsLoRA` among their bases.

    PYTHON tools/vllm/recorders/adapters.py FILE

PYTHON is the interpreter of any vLLM; its source is read and no model is imported. A class whose bases it does not name
counts as one that takes adapters, as do those of `vllm/models`, which differ by platform. FILE is the catalogue's
`vllm/architectures/adapters.json`, of which the entry of this release is replaced: the names of the classes, sorted.
vLLM refuses adapters for them when its worker has loaded the model (`NAME does not support LoRA yet.`,
v1/worker/lora_model_runner_mixin.py). Imports nothing of this project.
"""

from __future__ import annotations

import ast
import json
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

_INTERFACE = "SupportsLoRA"
# Bases that are defined elsewhere, and are no model of vLLM's.
_PLAIN = frozenset({"ABC", "Module", "Protocol", "object"})


def bases_by_class(models: Path) -> dict[str, list[str]]:
    """The names of the bases of every class that the modules of models define, by the class's name."""
    bases: dict[str, list[str]] = {}
    # Classes of config.py have names of models, and are none.
    for path in sorted(path for path in models.rglob("*.py") if path.name != "config.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
                for target in node.targets:
                    bases.setdefault(ast.unparse(target), []).append(node.value.id)
            if isinstance(node, ast.ClassDef):
                names = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
                bases.setdefault(node.name, []).extend(names)
                # Set on the class itself by a few.
                if any(
                    isinstance(part, ast.Assign) and ast.unparse(part) == "supports_lora = True" for part in node.body
                ):
                    bases[node.name].append(_INTERFACE)
    return bases


def takes_adapters(name: str, bases: dict[str, list[str]], seen: frozenset[str] = frozenset()) -> bool:
    """Whether a class has the interface among its bases, at any depth."""
    if name == _INTERFACE:
        return True
    if name not in bases:
        return name not in _PLAIN
    return name not in seen and any(takes_adapters(base, bases, seen | {name}) for base in bases.get(name, ()))


def main() -> None:
    """Replace the entry of the installed release."""
    package = find_spec("vllm")
    if package is None or package.origin is None:
        sys.exit("expected an interpreter with vLLM, got one without")
    folder = Path(package.origin).parent
    registry = (folder / "model_executor" / "models" / "registry.py").read_text(encoding="utf-8")
    served = {
        str(entry.elts[1].value)
        for node in ast.walk(ast.parse(registry))
        if isinstance(node, ast.Dict)
        for entry in node.values
        if isinstance(entry, ast.Tuple) and len(entry.elts) == 2 and isinstance(entry.elts[1], ast.Constant)
    }
    bases = bases_by_class(folder / "model_executor" / "models")
    path = Path(sys.argv[1])
    recorded = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    recorded[version("vllm").partition("+")[0]] = sorted(name for name in served if not takes_adapters(name, bases))
    path.write_text(json.dumps(dict(sorted(recorded.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
