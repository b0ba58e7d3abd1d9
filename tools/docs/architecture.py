"""Pictures and tables of docs/architecture.md: the layers of each import contract, and what each package owns.

.venv/bin/python -m tools.docs.architecture
"""

from __future__ import annotations

import ast
import importlib.util
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel_base.text.markdown import table_row
from tools.docs.generated_sections import ROOT, put

if TYPE_CHECKING:
    from collections.abc import Iterator


def sections() -> str:
    """A picture and a table for each contract of layers, from top to bottom."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    return "\n\n".join(_section(contract) for contract in contracts if contract["type"] == "layers") + "\n"


def _section(contract: dict[str, Any]) -> str:
    container = next(iter(contract.get("containers", [])), "")
    title = f"**{contract['name'].capitalize()}**" + (f" (`{container}`)" if container else "")
    layers = [layer.replace(" | ", " · ") for layer in contract["layers"]]
    picture = ["```mermaid", "flowchart TD", *(f'  row{row}["{layer}"]' for row, layer in enumerate(layers, start=1))]
    picture += [f"  row{row} --> row{row + 1}" for row in range(1, len(layers))]
    rows = [title, "", *picture, "```", "", "| row | package | what it owns |", "|---|---|---|"]
    for number, layer in enumerate(contract["layers"], start=1):
        for room in layer.split(" | "):
            module = f"{container}.{room}" if container else room
            rows.append(table_row((number, f"`{room}`", _summary(module))))
    return "\n".join(rows)


def _summary(module: str) -> str:
    source = next(path for path in _places(module) if path.is_file()).read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").split("\n", 1)[0]


def _places(module: str) -> Iterator[Any]:
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    path = Path(*(spec.submodule_search_locations or ())[:1] if spec else (), *rest)
    yield path / "__init__.py"
    yield path.with_suffix(".py")


if __name__ == "__main__":
    put(ROOT / "docs" / "architecture.md", "tools.docs.architecture", sections())
