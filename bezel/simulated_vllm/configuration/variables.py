"""Checks of environment variables as vLLM makes them at start: a refused name or value ends the server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bezel.catalog import tpu_variables
from bezel.simulated_vllm.configuration.failures import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.catalog import Variable

_PREFIX = "VLLM_"


def check_names(environment: Mapping[str, str], known: Mapping[str, Variable]) -> None:
    """Check the names, as with `--fail-on-environ-validation`.

    Raises:
        StartError: the release does not know a variable with vLLM's prefix.
    """
    for name in environment:
        if name.startswith(_PREFIX) and name not in known:
            raise StartError("ValueError", f"Unknown vLLM environment variable detected: {name}")


def check_values(environment: Mapping[str, str], known: Mapping[str, Variable], *, xla: bool) -> None:
    """Check the values: the server reads every variable once at start, whether it uses it or not.

    Raises:
        StartError: the reader of a variable refuses its value; with the reader's own text.
    """
    readers = {**tpu_variables().variables, **known} if xla else known
    for name, value in environment.items():
        if name not in readers:
            continue
        try:
            _read(readers[name], value)
        except ValueError as error:
            kind = "json.decoder.JSONDecodeError" if isinstance(error, json.JSONDecodeError) else "ValueError"
            raise StartError(kind, str(error)) from None


def _read(variable: Variable, value: str) -> None:
    if variable.kind == "int" or variable.strict:
        try:
            int(value)
        except ValueError:
            if variable.name == "VLLM_PORT":
                raise ValueError(f"VLLM_PORT '{value}' must be a valid integer") from None
            raise
    elif variable.kind == "float":
        float(value)
    elif variable.kind == "json":
        json.loads(value)
    elif variable.kind == "choice":
        _choose(variable, value)


def _choose(variable: Variable, value: str) -> None:
    words = [word.strip() for word in value.split(",") if word.strip()] if variable.listed else [value]
    known = [choice.lower() for choice in variable.choices] if variable.any_case else variable.choices
    for word in words:
        if (word.lower() if variable.any_case else word) not in known:
            raise ValueError(
                f"Invalid value '{word}' {'in' if variable.listed else 'for'} {variable.name}. "
                f"Valid options: {list(variable.choices)}."
            )
