"""Parsing of fault requests: a checked kind with its parameters, or all errors at once."""

from collections.abc import Iterable, Mapping
from math import isfinite

from bezel.errors import UserError
from bezel.localcloud.faults.kinds import KINDS, Kind, Parameter, Value


class FaultError(UserError):
    """An invalid fault request; the text is for the user and lists the valid choices."""


def known(name: str) -> Kind:
    """A kind by its name.

    Raises:
        FaultError: There is no such kind.
    """
    if name not in KINDS:
        raise FaultError(f"there is no fault {name!r}, so nothing was changed. There are: {', '.join(sorted(KINDS))}.")
    return KINDS[name]


def checked(name: str, given: object) -> dict[str, Value]:
    """All parameters of a kind: the given ones (texts, or numbers for numbers) and the defaults of the others.

    Raises:
        FaultError: A parameter is wrong; the text names every error at once.
    """
    kind = known(name)
    if not isinstance(given, Mapping):
        raise FaultError(f"the parameters of {name} are no object of names and values, so nothing was changed.")
    values: dict[str, Value] = {one.name: one.default for one in kind.parameters}
    problems = []
    for key, value in given.items():
        parameter = kind.parameter(str(key))
        if parameter is None:
            problems.append(f"{name} has no parameter {key!r}; {_parameters(kind)}")
            continue
        try:
            values[parameter.name] = _value(parameter, value)
        except ValueError as error:
            problems.append(f"{key}={value}: {error}")
    if problems:
        raise FaultError("; ".join(problems) + ". Nothing was changed.")
    return values


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """Parse the `key=value` words of a command line.

    Raises:
        FaultError: A word is not of that form.
    """
    found = dict(text.partition("=")[::2] for text in texts)
    if wrong := [text for text in texts if "=" not in text]:
        raise FaultError(f"{', '.join(wrong)}: parameters are written NAME=VALUE. Nothing was changed.")
    return found


def _value(parameter: Parameter, value: object) -> Value:
    if isinstance(parameter.default, str):
        text = str(value)
        if parameter.choices and text not in parameter.choices:
            raise ValueError(f"it must be one of {', '.join(parameter.choices)}")
        return text
    whole = isinstance(parameter.default, int)
    try:
        number: int | float = int(str(value)) if whole else float(str(value))
    except ValueError:
        raise ValueError(f"it must be a {'whole number' if whole else 'number'}") from None
    if not isfinite(number):
        raise ValueError("it must be a finite number")
    if (parameter.least is not None and number < parameter.least) or (
        parameter.most is not None and number > parameter.most
    ):
        bounds = [f"at least {parameter.least:g}"] if parameter.least is not None else []
        bounds += [f"at most {parameter.most:g}"] if parameter.most is not None else []
        raise ValueError(f"it must be {' and '.join(bounds)}")
    return number


def _parameters(kind: Kind) -> str:
    names = ", ".join(one.name for one in kind.parameters)
    return f"it has {names}" if names else "it has none"
