"""No module of the project imports itself through others, imports for types and within functions included."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("bezel", "components", "packages", "policies", "smoke", "stacks")


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported(source: str, modules: set[str]) -> set[str]:
    """Which of some modules a source imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & modules or {node.module}
    return found & modules


def test_no_module_imports_itself_through_others() -> None:
    paths = {name_of(path): path for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    graph = {name: imported(path.read_text(encoding="utf-8"), set(paths)) - {name} for name, path in paths.items()}
    list(TopologicalSorter(graph).static_order())


def test_a_circle_is_noticed() -> None:
    sources = {"a": "def f():\n    import b", "b": "from c import x", "c": "if True:\n    from a import f"}
    graph = {name: imported(source, set(sources)) for name, source in sources.items()}
    with pytest.raises(CycleError):
        list(TopologicalSorter(graph).static_order())
