"""Values of the Common Expression Language and the bounds of one evaluation. Pure.

A value is a text, a number, a boolean, None, a list or a map, as JSON has them, or a time
(`bezel_localcloud.access.cel.times`). Values of two kinds are never equal, and have no order. Whole numbers have 64
bits.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bezel_localcloud.core.work import TooMuchWorkError, Work

LARGEST = 100_000
"""Characters and elements, those within elements included, of a value that an expression makes."""

MOST_STEPS = 100_000
"""Steps that the expressions of one exchange of a token may take together, about a tenth of a second."""

_PER_STEP = 50  # characters and elements that are read or written in a step


class EvaluationError(Exception):
    """An expression without a value for these claims, such as one that reads an absent claim."""


class Meter:
    """What one evaluation, or several in turn, may still do."""

    def __init__(self, work: Work | None = None) -> None:
        """Count against `work`, by default `MOST_STEPS` of its own."""
        self.work = work or Work(MOST_STEPS)
        # A list that a macro made can hold the same list many times: each is weighed once, and kept so that its id is.
        self._weights: dict[int, tuple[Any, int]] = {}

    def reads(self, *values: Any) -> None:
        """Count the reading of values that is about to happen.

        Raises:
            TooMuchWorkError: It takes more steps than what is left.
        """
        self.work.spend(1 + sum(self.weight(value) for value in values) // _PER_STEP)

    def makes(self, weight: int) -> None:
        """Count the making of a value that is about to happen.

        Raises:
            TooMuchWorkError: The value is larger than `LARGEST`, or takes more steps than what is left.
        """
        self.check_size(weight)
        self.work.spend(1 + weight // _PER_STEP)

    def compares(self, left: Any, right: Any) -> None:
        """Count a comparison that is about to happen: it ends with the smaller value.

        Raises:
            TooMuchWorkError: It takes more steps than what is left.
        """
        self.work.spend(1 + min(self.weight(left), self.weight(right)) // _PER_STEP)

    @staticmethod
    def check_size(weight: int) -> None:
        """Check the size of a value that is being made.

        Raises:
            TooMuchWorkError: It is larger than `LARGEST`.
        """
        if weight > LARGEST:
            raise TooMuchWorkError(f"it makes a value of more than {LARGEST} characters and elements")

    def weight(self, value: Any) -> int:
        """Characters and elements of a value, those within its elements included."""
        if isinstance(value, str):
            return 1 + len(value)
        if not isinstance(value, list | Mapping):
            return 1
        weighed = self._weights.get(id(value))
        if weighed is None:
            self.work.spend(1 + len(value) // _PER_STEP)
            parts: Iterable[Any] = value if isinstance(value, list) else (*value.keys(), *value.values())
            weighed = value, 1 + sum(self.weight(part) for part in parts)
            self._weights[id(value)] = weighed
        return weighed[1]


class Scope:
    """The variables that an expression reads, and the meter of its evaluation."""

    __slots__ = ("_variables", "meter")

    def __init__(self, variables: Mapping[str, Any], meter: Meter) -> None:
        """Hold them."""
        self._variables, self.meter = variables, meter

    def __getitem__(self, name: str) -> Any:
        try:
            return self._variables[name]
        except KeyError:
            raise EvaluationError(f"no such variable: {name[:100]}") from None

    def having(self, name: str, value: Any) -> "Scope":
        """This scope with one variable more."""
        return Scope({**self._variables, name: value}, self.meter)


def boolean(value: Any) -> bool:
    """Return a condition's value.

    Raises:
        EvaluationError: It is neither true nor false.
    """
    if not isinstance(value, bool):
        raise EvaluationError("a condition that is neither true nor false")
    return value


def in_range(value: Any) -> Any:
    """Return a number that a whole number's 64 bits hold.

    Raises:
        EvaluationError: They do not.
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise EvaluationError("integer overflow")
    return value


def kind_of(value: Any) -> str:
    """Name of a value's kind; whole numbers and others are of one kind."""
    return _KINDS.get(type(value)) or next((name for kind, name in _WIDER if isinstance(value, kind)), "other")


_KINDS = {bool: "boolean", int: "number", float: "number", str: "text", list: "list", dict: "map", type(None): "null"}
_WIDER: list[tuple[type, str]] = [(str, "text"), (list, "list"), (Mapping, "map")]


def same_kind(left: Any, right: Any) -> bool:
    """Whether two values are of one kind, as only such values can be equal."""
    kind = kind_of(left)
    return kind == kind_of(right) and (kind != "other" or type(left) is type(right))


def are_equal(left: Any, right: Any) -> bool:
    """Whether two values are equal, with all that they hold: true is not 1, and no number is NaN."""
    if not same_kind(left, right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(are_equal, left, right))
    if isinstance(left, Mapping):
        return len(left) == len(right) and all(
            has_key(right, key) and are_equal(value, right[key]) for key, value in left.items()
        )
    return bool(left == right)


def has_key(of: Mapping[Any, Any], key: Any) -> bool:
    """Whether a map has a key; to Python, 1 and True are the same one."""
    if isinstance(key, str):
        return key in of
    return isinstance(key, int | float) and key in of and any(same_kind(key, each) for each in of if each == key)
