"""No module of the project imports itself through others, imports for types and within functions included."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.source_nodes import nodes_of

ROOT = Path(__file__).parents[2]
ROOMS = ("bezel", "components", "packages", "policies", "services", "smoke", "stacks")


def name_of(path: Path) -> str:
    """The dotted name that a module is imported by: from the folder of its distribution on, if it has one."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    start = next((index for index, part in enumerate(parts) if part.startswith("bezel")), 0)
    return ".".join(parts[start:]).removesuffix(".__init__")


# An import, wherever it stands; a line of a text may look like one.
IMPORT = re.compile(
    r"^[ \t]*((?:from[ \t]+\S+[ \t]+import[ \t]+(?:\([^)]*\)|[^\n(]+))|(?:import[ \t]+[^\n]+))", re.MULTILINE
)
# One that shares its line with another statement, or takes a second line without parentheses.
OTHER_IMPORT = re.compile(r"[:;][ \t]*(?:from|import)[ \t]|^[ \t]*(?:from|import)\b.*\\$", re.MULTILINE)


def import_nodes(source: str) -> list[ast.AST]:
    """The imports of a source, anywhere in it, found without parsing all of it: a quarter of a second, not four."""
    if OTHER_IMPORT.search(source):
        return nodes_of(ast.parse(source))
    try:
        return nodes_of(ast.parse("\n".join(IMPORT.findall(source))))
    except SyntaxError:  # a sentence begins with "import"
        return nodes_of(ast.parse(source))


def imported_modules(source: str, modules: set[str]) -> set[str]:
    """Which of some modules a source imports, anywhere in it."""
    modules_of_source: set[str] = set()
    for node in import_nodes(source):
        if isinstance(node, ast.Import):
            modules_of_source |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            modules_of_source |= inner & modules or {node.module}
    return modules_of_source & modules


@pytest.mark.slow
def test_no_module_imports_itself_through_others() -> None:
    paths = {name_of(path): path for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    graph = {
        name: imported_modules(path.read_text(encoding="utf-8"), set(paths)) - {name} for name, path in paths.items()
    }
    list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("packages/bench/bezel_bench/load/__init__.py", "bezel_bench.load"),
        ("bezel/rest/client.py", "bezel.rest.client"),
        ("smoke/base.py", "smoke.base"),
    ],
)
def test_a_module_has_the_name_that_imports_use(path: str, name: str) -> None:
    assert name_of(ROOT / path) == name


def test_a_circle_is_noticed() -> None:
    sources = {"a": "def f():\n    import b", "b": "from c import x", "c": "if True:\n    from a import f"}
    graph = {name: imported_modules(source, set(sources)) for name, source in sources.items()}
    with pytest.raises(CycleError):
        list(TopologicalSorter(graph).static_order())
