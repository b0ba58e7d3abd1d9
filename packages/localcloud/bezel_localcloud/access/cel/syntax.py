"""Tree of an expression of the Common Expression Language: its nodes, and a walk over them. Pure.

Operators, functions and methods are calls: `a + b` of "+", `size(a)` of "size", `a.size()` of ".size" with `a` as the
first argument, `a[b]` of "[]", `a ? b : c` of "?:".
"""

from collections.abc import Iterator
from dataclasses import dataclass


class CelError(Exception):
    """An expression that cannot be parsed, has no type, or has a part that is not supported; the text names it."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: a text, a number, a boolean or None."""

    value: str | float | bool | None


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a value: `of.name`."""

    of: "Node"
    name: str


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether a value has a field: `has(of.name)`."""

    of: "Node"
    name: str


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """An operator, a function or a method with its arguments."""

    name: str
    arguments: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of what its parts make."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map of what its pairs of key and value make."""

    pairs: tuple[tuple["Node", "Node"], ...]


@dataclass(frozen=True, slots=True)
class Comprehension:
    """A macro over a list's elements or a map's keys.

    Attributes:
        macro: all, exists, exists_one, filter or map.
        of: The list or map.
        variable: Name of the variable that holds each of them in turn.
        condition: What is asked of each; None for a `map` that asks nothing.
        result: What `map` makes of each; None for the others.
    """

    macro: str
    of: "Node"
    variable: str
    condition: "Node | None"
    result: "Node | None"


Node = Literal | Name | Field | Presence | FunctionCall | ListOf | MapOf | Comprehension


def walk(root: Node) -> Iterator[Node]:
    """A node and all nodes below it."""
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


def children(node: Node) -> list[Node]:
    """The nodes directly below a node."""
    match node:
        case Field(of) | Presence(of):
            return [of]
        case FunctionCall(_, arguments):
            return list(arguments)
        case ListOf(items):
            return list(items)
        case MapOf(pairs):
            return [part for pair in pairs for part in pair]
        case Comprehension(_, of, _, condition, result):
            return [of, *(part for part in (condition, result) if part is not None)]
    return []
