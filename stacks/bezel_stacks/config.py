"""Configuration at the program's edge: settings and environment variables, as plain values for the planner.

Reads, and judges only values that must not be passed on: an encrypted setting, which would end up in a message.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import pulumi
from pulumi.runtime import config as engine_config

from bezel.planner import PlanError
from bezel.planner.base.problems import NAMESPACE
from bezel.planner.base.stack_file import StackFileError, problems_of_spellings, read_stack_file
from bezel_base.errors import ENCRYPTED, Problem, UserError
from bezel_catalog.option_values import as_structure


def settings() -> dict[str, object]:
    """Read all keys of the stack's configuration in Bezel's namespace, so that unknown ones are found too.

    Structured values reach a program as JSON text and are decoded; a plain value stays text.

    Raises:
        UserError: Settings are encrypted; it holds a problem for each.
    """
    prefix = f"{NAMESPACE}:"
    values = {key: value for key, value in engine_config.CONFIG.get().items() if key.startswith(prefix)}
    if encrypted := sorted(filter(engine_config.is_config_secret, values)):
        raise UserError(*map(_encryption_problem, encrypted))
    return {key.removeprefix(prefix): as_structure(value) for key, value in values.items()}


def check_stack_file(stack: str, folder: Path, project: str) -> None:
    """Refuse what the engine reads differently from how the stack's file has it: values, and names of keys.

    The engine's values do not show it: `010` has become 8, `bezel:config:cost` has become `bezel:cost`. A missing file,
    or another one than the engine's, is no error: the engine has read what it needed.

    Raises:
        PlanError: There are such values and keys; each is named.
    """
    name = f"Pulumi.{stack}.yaml"
    try:
        content, problems = read_stack_file((folder / name).read_text(encoding="utf-8"), name)
    except (OSError, UnicodeDecodeError, StackFileError):
        return
    if problems := [*problems, *problems_of_spellings(content, project, name)]:
        raise PlanError.of(problems, stack)


def google_project(environment: Mapping[str, str] = os.environ) -> str | None:
    """The Google Cloud project: the provider's setting, else its environment variables; None where none is set."""
    variables = (environment.get(name) for name in ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT"))
    return pulumi.Config("gcp").get("project") or next(filter(None, variables), None)


def is_simulated(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the server is a simulated one, so that no figure counts as a measurement."""
    return environment.get("BEZEL_SIMULATED") == "1"


def deadline(seconds: float, environment: Mapping[str, str] = os.environ) -> float:
    """The time limit: `seconds`, or less by BEZEL_DEADLINE_SECONDS, which rehearsals set.

    Raises:
        UserError: The variable is not a positive number.
    """
    text = environment.get("BEZEL_DEADLINE_SECONDS", "")
    if not text:
        return seconds
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not limit > 0:
        consequence = "expected a number of seconds above 0: checks could not wait."
        raise UserError(Problem("BEZEL_DEADLINE_SECONDS", text, consequence, "write e.g. 600, or unset it."))
    return min(seconds, limit)


def _encryption_problem(key: str) -> Problem:
    return Problem(
        key,
        ENCRYPTED,
        "plans and messages show settings, so a setting may not be a secret.",
        "put the secret's value into Secret Manager and its id into the setting, e.g. "
        "`pulumi config set --path 'bezel:secrets.HF_TOKEN' hf-token`.",
    )
