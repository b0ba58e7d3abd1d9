"""Configuration at the program's edge: the stack's settings, as plain values for the planner.

Reads, and judges only values that must not be passed on: an encrypted setting, which would end up in a message.
"""

from pathlib import Path

from pulumi.runtime import config as engine_config

from bezel.planner import PlanError
from bezel.planner.base.problems import NAMESPACE
from bezel.planner.base.stack_file import (
    StackFileError,
    problems_of_namespace,
    problems_of_spellings,
    read_stack_file,
)
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
    in_namespaces = [*problems_of_spellings(content, project, name), *problems_of_namespace(content, project, name)]
    if problems := [*problems, *in_namespaces]:
        raise PlanError.of(problems, stack)


def _encryption_problem(key: str) -> Problem:
    return Problem(
        key,
        ENCRYPTED,
        "plans and messages show settings, so a setting may not be a secret.",
        "put the secret's value into Secret Manager and its id into the setting, e.g. "
        "`pulumi config set --path 'bezel:secrets.HF_TOKEN' hf-token`.",
    )
