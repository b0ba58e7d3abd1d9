"""Kinds of faults and their parameters (data/faults.toml), and the check of a fault request."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any, Literal

from bezel_base.errors import Problem, WrongValueError
from bezel_localcloud import PROGRAM

Value = str | int | float
_NOTHING = "so nothing was changed."


class FaultError(WrongValueError):
    """An invalid fault request; the text is for the user and lists the valid choices."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kind.

    Attributes:
        default: Its value if none is given; also sets the parameter's type.
        text: Its meaning, with its unit.
        minimum: The lowest value of a number.
        maximum: The highest value of a number.
        choices: Allowed texts; empty for any.
    """

    name: str
    default: Value
    text: str
    minimum: float = -inf
    maximum: float = inf
    choices: tuple[str, ...] = ()

    @property
    def expectation(self) -> str:
        """The allowed values of a text with choices, or of a number."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        low = f" of at least {self.minimum:g}" if isfinite(self.minimum) else ""
        high = f" and at most {self.maximum:g}" if isfinite(self.maximum) else ""
        return ("an integer" if isinstance(self.default, int) else "a finite number") + low + high

    def parse(self, value: object) -> Value | None:
        """A value of the parameter's type; None for a value that is not allowed."""
        if isinstance(self.default, str):
            return str(value) if not self.choices or str(value) in self.choices else None
        try:
            number = type(self.default)(str(value))
        except ValueError:
            return None
        return number if self.minimum <= number <= self.maximum and -inf < number < inf else None


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault; `place` is what applies it, see data/faults.toml."""

    name: str
    text: str
    place: Literal["platform", "container", "balancer", "requests", "machine", "at once"]
    parameters: dict[str, Parameter]


def _kinds() -> Iterable[FaultKind]:
    table = tomllib.loads((Path(__file__).parents[1] / "data" / "faults.toml").read_text(encoding="utf-8"))
    for name, row in table["kinds"].items():
        shared, own_parameters = table["shared"].get(row.get("shared"), {}), row.get("parameters", {})
        fields = {key: own_parameters[key] for key in own_parameters if key not in shared}
        fields |= {key: common | own_parameters.get(key, {}) for key, common in shared.items()}
        parameters = {
            key: Parameter(key, **{**field, "choices": tuple(field.get("choices", ()))})
            for key, field in fields.items()
        }
        yield FaultKind(name, row["text"], row["place"], parameters)


KINDS: dict[str, FaultKind] = {kind.name: kind for kind in _kinds()}


def kind_of(name: str, *, program: str = PROGRAM) -> FaultKind:
    """A kind by its name.

    Args:
        name: The name.
        program: The program that lists the kinds, as a user types it.

    Raises:
        FaultError: There is no such kind.
    """
    if name not in KINDS:
        repair = f"choose one of {', '.join(sorted(KINDS))}; `{program} fault list` explains them."
        raise FaultError(Problem("fault", name, f"is not a kind of fault, {_NOTHING}", repair))
    return KINDS[name]


def parse_parameters(name: str, sent: object) -> dict[str, Value]:
    """All parameters of a kind: the given ones (texts, or numbers for numbers) and the defaults of the others.

    Raises:
        FaultError: A parameter is wrong; the text names every error at once.
    """
    parameters = kind_of(name).parameters
    if not isinstance(sent, Mapping):
        problem = Problem(f"parameters of {name}", sent, f"is not an object, {_NOTHING}", "send names with values.")
        raise FaultError(problem)
    problems, values = [], {parameter.name: parameter.default for parameter in parameters.values()}
    for key, value in sent.items():
        if (parameter := parameters.get(str(key))) is None:
            repair = f"choose one of its parameters: {', '.join(parameters)}." if parameters else "leave it out."
            problems.append(Problem(str(key), value, f"is not a parameter of {name}, {_NOTHING}", repair))
        elif (parsed := parameter.parse(value)) is None:
            repair = f"use {parameter.expectation}, e.g. {key}={parameter.default}."
            problems.append(Problem(str(key), value, f"is not {parameter.expectation}, {_NOTHING}", repair))
        else:
            values[parameter.name] = parsed
    if problems:
        raise FaultError(*problems)
    return values


def parse_pairs(arguments: Iterable[str]) -> dict[str, str]:
    """Parse the `key=value` words of a command line.

    Raises:
        FaultError: A word does not have that form.
    """
    problems = [
        Problem(word, None, f"has no value, {_NOTHING}", f"write {word}=VALUE.")
        for word in arguments
        if "=" not in word
    ]
    if problems:
        raise FaultError(*problems)
    return dict(word.partition("=")[::2] for word in arguments)


def table() -> list[dict[str, Any]]:
    """Every kind with its parameters as JSON, for clients in any language."""
    return [
        {
            "kind": kind.name,
            "text": kind.text,
            "parameters": [_json(parameter) for parameter in kind.parameters.values()],
        }
        for kind in KINDS.values()
    ]


def _json(parameter: Parameter) -> dict[str, Any]:
    bounds = {"least": parameter.minimum, "most": parameter.maximum}
    choices = {"choices": list(parameter.choices)} if parameter.choices else {}
    row = {"name": parameter.name, "default": parameter.default, "text": parameter.text}
    return row | {name: bound for name, bound in bounds.items() if isfinite(bound)} | choices
