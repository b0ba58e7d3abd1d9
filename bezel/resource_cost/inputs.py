"""Inputs of a resource as the engine passes them, read by path. A value unknown before the deploy cannot be read.

Owns the refusal of an input that is unknown, missing or of a wrong shape, as a problem that names it, and what counts
as the same input: Google's APIs and the providers take a name as `machineType` and as `machine_type`, and a switch as
text and as a number, too. Leaves what an input means to its readers.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Final

from bezel_base.errors import NOT_SET, Problem, UserError, format_value


class _Unknown(Enum):
    UNKNOWN = "(not known before the deploy)"


UNKNOWN: Final = _Unknown.UNKNOWN
"""Placeholder of an input that a preview cannot know."""


_ON = frozenset({"true", "1", "1.0", "yes", "on", "t", "y"})
_OFF = frozenset({"false", "0", "0.0", "no", "off", "f", "n", "", "none", "null"})
MAX_COUNT = 10**9
"""Upper bound of any plausible number of instances, nodes or seconds."""


class InputError(UserError):
    """An input that a rule needs cannot be checked, so the resource is refused."""

    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Plain inputs below the path `where`: mappings, lists, text, numbers, switches and UNKNOWN."""

    values: object
    where: tuple[str, ...] = ()

    def get(self, *path: str) -> object:
        """The value at a path; None without one.

        Raises:
            InputError: it, or a part of its path, is not known yet, or it is written twice, in two spellings.
        """
        here = self.values
        for depth, key in enumerate(path, start=1):
            if not isinstance(here, Mapping):
                return None
            names = [name for name in spellings(key) if here.get(name) is not None]
            if len(names) > 1 and here[names[0]] != here[names[1]]:
                both = " and ".join(names)
                raise self.refusal(both, "one input has two values.", f"write {key} alone.", *path[:depth])
            here = here[names[0]] if names else None
            if here is UNKNOWN:
                raise InputError(not_known(self.key(*path[:depth])))
        return here

    def is_unknown(self, key: str) -> bool:
        """Whether the value of a key comes from a resource that does not exist yet."""
        return isinstance(self.values, Mapping) and any(self.values.get(name) is UNKNOWN for name in spellings(key))

    def switch(self, *path: str) -> bool | None:
        """The switch at a path, written as a switch, as text or as a number; None without one.

        Raises:
            InputError: it is neither on nor off, or not known yet.
        """
        value = self.get(*path)
        if value is None:
            return None
        on = switch_value(value)
        if on is None:
            raise self.refusal(value, "expected true or false.", "write true or false.", *path)
        return on

    def key(self, *path: str) -> str:
        """The path's full name, e.g. `template.scaling.maxInstanceCount`."""
        return ".".join((*self.where, *path))

    def at(self, *path: str) -> "Inputs":
        """The inputs below a path."""
        return Inputs(self.get(*path), (*self.where, *path))

    def each(self, *path: str) -> "list[Inputs]":
        """The entries of a list; empty without a list.

        Raises:
            InputError: the list, or one of its entries, is not known yet.
        """
        values = self.get(*path)
        if not isinstance(values, Sequence) or isinstance(values, str):
            return []
        entries = [Inputs(entry, (*self.where, *path, str(number))) for number, entry in enumerate(values)]
        for entry in entries:
            if entry.values is UNKNOWN:
                raise InputError(not_known(entry.key()))
        return entries

    def text(self, *path: str) -> str | None:
        """The text at a path; None without one, or for empty text."""
        value = self.get(*path)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise self.refusal(value, "expected text.", "write text.", *path)
        return value

    def number(self, *path: str) -> Decimal | None:
        """The number at a path, written as a number or as text; None without one."""
        value = self.get(*path)
        if value is None:
            return None
        number = _number(value)
        if number is None:
            raise self.refusal(value, "expected a number.", "write a number.", *path)
        return number

    def count(self, *path: str) -> int:
        """The count at a path; 0 without one.

        Raises:
            InputError: it is no whole number, below 0, or implausibly large.
        """
        number = self.number(*path) or Decimal(0)
        if not 0 <= number <= MAX_COUNT or number != number.to_integral_value():
            raise self.refusal(self.get(*path), "expected a plausible integer, 0 or more.", "write one.", *path)
        return int(number)

    def required_text(self, consequence: str, repair: str, *path: str) -> str:
        """The text at a path, which must be there."""
        text = self.text(*path)
        if text is None:
            raise self.refusal(None, consequence, repair, *path)
        return text

    def refusal(self, value: object, consequence: str, repair: str, *path: str) -> InputError:
        """The error for the value at a path."""
        written = NOT_SET if value is None else plainly(value)
        return InputError(Problem(self.key(*path), written, consequence, repair))


@lru_cache(maxsize=1024)
def spellings(key: str) -> tuple[str, ...]:
    """A name as its API writes it, and in snake case; one of them where both are the same."""
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower()
    return (key,) if snake == key.lower() else (key, snake)


@lru_cache(maxsize=4096)
def camel(name: str) -> str:
    """A name as Google's APIs write it, from either spelling, e.g. `machineType` from `machine_type`."""
    return re.sub(r"(?<=[a-z0-9])_([a-z])", lambda match: match[1].upper(), name)


def switch_value(value: object) -> bool | None:
    """What a value means as a switch; None where it means neither."""
    word = str(value).strip().lower()
    return True if word in _ON else False if word in _OFF else None


def plainly(value: object) -> str:
    """A value for a message: short, without secrets, and 40 instead of `40.0`."""
    return format_value(int(value) if isinstance(value, float) and value.is_integer() else value)


def _number(value: object) -> Decimal | None:
    try:
        number = Decimal(str(value))  # fails for a switch
    except ArithmeticError:
        return None
    return number if number.is_finite() else None


def not_known(key: str) -> Problem:
    """The problem of an input that a rule needs and a preview cannot know."""
    return Problem(
        key,
        str(UNKNOWN.value),
        "it comes from a resource that does not exist yet, so this policy cannot check it.",
        "compute it in the program from the stack's settings instead of taking it from another resource's output.",
    )
