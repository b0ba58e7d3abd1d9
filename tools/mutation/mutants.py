"""Mutants of an area: the source with one thing removed in each. Pure; `mutate.py` runs them.

Kinds of removals:

- `rows`: a property in a table of the provider (JSON), such as `"location": "text required new"`;
- `refusals`: a statement that refuses an input, `raise …` or `yield field, text`;
- `statements`: a statement of a function that sends, yields or sets something, a key of a dict, an inverted `if`;
- `entries`: a member of a list in a JSON file.
"""

from __future__ import annotations

import ast
import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_DOING = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Break, ast.Continue)


@dataclass(frozen=True)
class Mutant:
    """One file with one thing removed."""

    file: str
    name: str
    source: str


@dataclass(frozen=True)
class _Spot:
    """A node, the names of its enclosing definitions, and its position in its parent."""

    place: str
    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None


def mutants(file: str, source: str, kinds: tuple[str, ...]) -> list[Mutant]:
    """Every mutant of one file, in the order of the source; names are unique within the file."""
    if file.endswith(".json"):
        document = json.loads(source)
        removals = list(_rows(document) if "rows" in kinds else _entries(document))
    else:
        tree = ast.parse(source)
        removals = [pair for kind in kinds for pair in _IN_PYTHON[kind](tree)]
    counts: dict[str, int] = {}
    mutants = []
    for name, text in removals:
        counts[name] = counts.get(name, 0) + 1
        mutants.append(Mutant(file, name if counts[name] == 1 else f"{name} ({counts[name]})", text))
    return mutants


def _entries(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in document.items():
        if isinstance(value, list):
            for index, entry in enumerate(value):
                name = entry.get("name", index) if isinstance(entry, dict) else entry
                yield f"{key}: {name}", json.dumps({**document, key: value[:index] + value[index + 1 :]})


def _rows(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each property of a resource type's table or of a shared group of them."""
    for token, row in document.items():
        path = (token, "fields") if "fields" in row else (token,)
        for properties in _properties(row.get("fields", row), path):
            changed = copy.deepcopy(document)
            *parents, last = properties
            inner = changed
            for parent in parents:
                inner = inner[parent]
            del inner[last]
            yield ".".join(name for name in properties if name != "fields"), json.dumps(changed)


def _properties(table: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, value in table.items():
        if name != "@":
            yield (*path, name)
        if isinstance(value, dict):
            yield from _properties(value, (*path, name))


def _refusals(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for spot in _spots(tree):
        if isinstance(spot.node, ast.Raise) and spot.node.exc is not None:
            yield f"{spot.place}: {_short(spot.node)}", _edit(tree, spot, ast.Pass())
        elif isinstance(spot.node, ast.Expr) and isinstance(spot.node.value, ast.Yield):
            yield f"{spot.place}: {_short(spot.node)}", _edit(tree, spot, _yield_nothing())
        elif isinstance(spot.node, ast.Expr) and ast.unparse(spot.node).startswith("problems.append"):
            yield f"{spot.place}: {_short(spot.node)}", _edit(tree, spot, ast.Pass())


def _statements(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for spot in _spots(tree):
        node = spot.node
        if spot.place and isinstance(node, _DOING) and spot.field in ("body", "orelse", "finalbody"):
            if not isinstance(spot.parent, ast.ClassDef) and not _is_docstring(node):
                yields = isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield)
                instead = _yield_nothing() if yields else ast.Pass()
                yield f"{spot.place}: {_short(node)}", _edit(tree, spot, instead)
        elif spot.field == "test" and isinstance(node, ast.expr):
            turned = ast.UnaryOp(op=ast.Not(), operand=node)
            yield f"{spot.place}: not ({_short(node)})", _edit(tree, spot, turned)
        elif isinstance(node, ast.Dict):
            for index, key in enumerate(node.keys):
                if isinstance(key, ast.Constant):
                    rest = ast.Dict(node.keys[:index] + node.keys[index + 1 :], _but(node.values, index))
                    yield f"{spot.place}: key {key.value!s}", _edit(tree, spot, rest)


_IN_PYTHON: dict[str, Callable[[ast.Module], Iterator[tuple[str, str]]]] = {
    "refusals": _refusals,
    "statements": _statements,
}


def _but(values: list[ast.expr], index: int) -> list[ast.expr]:
    return values[:index] + values[index + 1 :]


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _yield_nothing() -> ast.stmt:
    """A statement that keeps a function a generator, without yielding."""
    return ast.If(test=ast.Constant(False), body=[ast.Expr(ast.Yield())], orelse=[])


def _spots(node: ast.AST, place: str = "") -> Iterator[_Spot]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or (isinstance(child, ast.If) and _short(child.test) == "TYPE_CHECKING"):
                continue
            yield _Spot(place, child, node, field, index)
            yield from _spots(child, _inside(place, child))


def _inside(place: str, node: ast.AST) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return f"{place}.{node.name}".lstrip(".")
    if isinstance(node, ast.Assign | ast.AnnAssign) and not place:
        return ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
    return place


def _edit(tree: ast.Module, spot: _Spot, instead: ast.AST | None) -> str:
    """The source with the node at the spot replaced, or removed from its list."""
    before = getattr(spot.parent, spot.field)
    if spot.index is None:
        after: Any = instead
    else:
        after = [*before[: spot.index], *([] if instead is None else [instead]), *before[spot.index + 1 :]]
    setattr(spot.parent, spot.field, after)
    try:
        return ast.unparse(tree)
    finally:
        setattr(spot.parent, spot.field, before)


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 100 else f"{text[:99]}…"
