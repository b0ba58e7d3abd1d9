"""Tree of a query: its nodes, the type of a node's value, and the errors of a query. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Type = Literal["scalar", "instant vector", "range vector", "string"]


class QueryError(ValueError):
    """A query that is wrong; the text says why, in Prometheus's words where it has some."""


class UnservedPartError(ValueError):
    """A query with a part that Prometheus has and localcloud does not serve; the text names it."""


@dataclass(frozen=True)
class Number:
    """A number."""

    value: float


@dataclass(frozen=True)
class Text:
    """A text."""

    value: str


@dataclass(frozen=True)
class Matcher:
    """A condition on a label.

    Attributes:
        label: The label's name.
        operator: "=", "!=", "=~" or "!~".
        value: A text or, with a tilde, a pattern that fits the whole value.
    """

    label: str
    operator: str
    value: str


@dataclass(frozen=True)
class Selector:
    """Series by their name and labels: their last samples, or with a window those of a range.

    Attributes:
        name: Name of the series.
        matchers: Further conditions.
        window: Seconds of a range vector; None for an instant vector.
        offset: Seconds by which it looks back.
    """

    name: str
    matchers: tuple[Matcher, ...] = ()
    window: float | None = None
    offset: float = 0.0


@dataclass(frozen=True)
class Subquery:
    """Values of an expression at each step of a range.

    Attributes:
        inner: The expression.
        window: Seconds of the range.
        step: Seconds between two values; None for the default.
        offset: Seconds by which it looks back.
    """

    inner: Node
    window: float
    step: float | None = None
    offset: float = 0.0


@dataclass(frozen=True)
class QueryFunction:
    """A call of a function."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Aggregation:
    """One value for each group of series.

    Attributes:
        operator: Such as "sum".
        inner: The vector.
        parameter: The first argument of `topk`, `bottomk` and `quantile`.
        labels: Labels of the groups, or with `without` those that a group does not have.
        without: Whether the labels are left out.
    """

    operator: str
    inner: Node
    parameter: Node | None = None
    labels: tuple[str, ...] = ()
    without: bool = False


@dataclass(frozen=True)
class Matching:
    """How series of two vectors belong together.

    Attributes:
        on: Whether by the labels; else by all but them.
        labels: The labels.
        many: The side that has several series for one of the other: "left", "right" or "" for neither.
        include: Labels that the result has from the other side.
    """

    on: bool = False
    labels: tuple[str, ...] = ()
    many: Literal["", "left", "right"] = ""
    include: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operation:
    """An operator between two expressions; `returns_bool` is its modifier `bool`."""

    operator: str
    left: Node
    right: Node
    matching: Matching | None = None
    returns_bool: bool = False


@dataclass(frozen=True)
class Negation:
    """An expression with a minus."""

    inner: Node


Node = Number | Text | Selector | Subquery | QueryFunction | Aggregation | Operation | Negation
