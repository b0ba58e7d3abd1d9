"""Wrong arguments of a component, as an error that any program shows without a traceback.

Owns the words: value, consequence and repair of each wrong argument, from what pydantic found. A rule of a component
says its repair after a semicolon.
"""

import pulumi
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bezel_base.errors import NOT_SET, Problem, UserError


class ArgumentsError(UserError, pulumi.RunError, ValueError):
    """Arguments that a component cannot work with; the program ends with this text alone.

    Attributes:
        details: What pydantic found, an entry a problem.
    """

    problems: tuple[Problem, ...]
    details: tuple[ErrorDetails, ...] = ()


def arguments_error(model: type[BaseModel], error: ValidationError) -> ArgumentsError:
    """The error of all that is wrong with the arguments of a model, and of the models in them."""
    problems: list[Problem] = []
    details: list[ErrorDetails] = []
    for detail in error.errors(include_url=False):
        inner = detail.get("ctx", {}).get("error")
        if isinstance(inner, ArgumentsError):
            problems += inner.problems
            for each in inner.details:
                each["loc"] = (*detail["loc"], *each["loc"])
                details.append(each)
        else:
            problems.append(_problem(model, detail))
            details.append(detail)
    result = ArgumentsError(*problems)
    result.details = tuple(details)
    return result


def _problem(model: type[BaseModel], detail: ErrorDetails) -> Problem:
    path = ".".join(map(str, detail["loc"]))
    key = f"{model.__name__}.{path}" if path else model.__name__
    value = detail["input"] if isinstance(detail["input"], str | int | float) else None
    match detail["type"]:
        case "missing":
            return Problem(key, NOT_SET, "the argument is required.", "pass it.")
        case "extra_forbidden":
            from difflib import get_close_matches

            near = get_close_matches(str(detail["loc"][-1]), model.model_fields, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            repair = f"{hint}Known: {', '.join(model.model_fields)}."
            return Problem(key, value, "this argument does not exist: it would have no effect.", repair)
    consequence, _, repair = detail["msg"].removeprefix("Value error, ").partition("; ")
    return Problem(key, value, f"{consequence}.", f"{repair or 'pass a value of that kind'}.")
