"""Exit codes that a command's code can end with: those of its results, and of the errors that it can reach.

A result's codes are the annotation of what returns them, which mypy holds its code to. An error can be reached where
the command's function refers to what raises it, through any number of functions and classes, by their names.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from bezel_base.errors import UserError
from tests.support.source_nodes import nodes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Place = tuple[str, str]
"""Module and name of a definition."""


def annotated_codes(function: Callable[..., Any]) -> frozenset[int]:
    """The codes that a function returns by its annotation; none where that is any number."""
    only_returned = SimpleNamespace(__annotations__={"return": function.__annotations__["return"]})
    returned = get_type_hints(only_returned, globalns=function.__globals__)["return"]
    return frozenset(map(int, get_args(returned))) if get_origin(returned) is Literal else frozenset()


def function_at(place: str) -> Callable[..., Any]:
    """The function of a place, MODULE:FUNCTION."""
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def raised_codes(place: str) -> frozenset[int]:
    """The exit codes of the errors that a function can reach.

    Args:
        place: The function, MODULE:FUNCTION.
    """
    module, _, name = place.partition(":")
    seen: set[Place] = set()
    waiting, codes = [(module, name)], set()
    while waiting:
        here = waiting.pop()
        if here in seen or not here[0].startswith("bezel"):
            continue
        seen.add(here)
        named, errors = _references(here)
        codes |= {error.exit_code for error in errors}
        waiting += named
    return frozenset(codes)


@functools.cache
def _references(place: Place) -> tuple[frozenset[Place], frozenset[type[UserError]]]:
    """The definitions that a definition refers to, and the errors that it raises or makes."""
    module, name = place
    definitions, imported = _names(module)
    if name not in definitions:
        return frozenset([imported[name]] if name in imported else []), frozenset()
    named: set[Place] = set()
    errors: set[type[UserError]] = set()
    for node in nodes_of(definitions[name]):
        match node:
            case ast.Attribute(value=ast.Name(id=above), attr=last) if above in imported:
                named.add((".".join(filter(None, imported[above])), last))
            case ast.Name(id=word) if word in definitions:
                named.add((module, word))
            case ast.Name(id=word) if word in imported:
                named.add(imported[word])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            made = _definition_at((module, node.func.id))
            if inspect.isclass(made) and issubclass(made, UserError):
                errors.add(made)
    return frozenset(named), frozenset(errors)


@functools.cache
def _names(module: str) -> tuple[dict[str, ast.stmt], dict[str, Place]]:
    """The functions and classes that a module defines, and the names that it imports, also within a function."""
    try:
        tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    except ImportError:  # of `value.attribute`, where the value is not a module
        return {}, {}
    definitions = {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    return dict(definitions), dict(_imports(tree))


def _imports(tree: ast.Module) -> Iterator[tuple[str, Place]]:
    for node in nodes_of(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((alias.asname or alias.name, (node.module, alias.name)) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.asname, (alias.name, "")) for alias in node.names if alias.asname)


def _definition_at(place: Place) -> object:
    """What a name of a module stands for, also one that only a function imports; None for a local one."""
    definitions, imported = _names(place[0])
    if place[1] not in definitions and place[1] in imported:
        place = imported[place[1]]
    try:
        return getattr(importlib.import_module(place[0]), place[1], None)
    except ImportError:
        return None
