"""Text of a stack's file for another stack: comments and order stay, and what would belong to both is changed.

Owns what is left out of it: keys of the stack's secrets, the time of a restart, who creates the bucket of weights, the
name of the service.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bezel.engine.local.stack_copy import without_keys
from bezel.engine.project.project import Project
from bezel.operations.stack_edits.file_text import with_setting
from bezel.operations.stack_edits.removed_text import without_setting
from bezel.planner.base.problems import NAMESPACE
from bezel.planner.base.stack_file import read_stack_file
from bezel_base.errors import ENCRYPTED, Problem, WrongValueError

_RESTART = re.compile(rf"^ *{NAMESPACE}:restarted_at:.*\n", re.MULTILINE)


def copied_text(project: Project, source: str, environment: str) -> str:
    """The content of a stack's file for another stack: comments and order stay.

    Args:
        project: The project.
        source: The stack that is copied.
        environment: Of the new stack.

    Raises:
        WrongValueError: The file holds encrypted values, which are of its stack alone.
        UserError: The file has problems, or a value cannot be changed in it.
    """
    file = project.stack_file(source)
    text = _RESTART.sub("", without_keys(file.read_text(encoding="utf-8")))
    content, _ = read_stack_file(text, file.name)
    if encrypted := sorted(_encrypted_keys(content)):
        consequence = f"the key of {source} encrypts it, and no other stack can read it."
        repair = "take it out of the copied file for the time of the copy, then set it as a secret in both."
        raise WrongValueError(*(Problem(f"{file.name}: {key}", ENCRYPTED, consequence, repair) for key in encrypted))
    # Two stacks of one service would take it from each other.
    text = without_setting(text, file.name, NAMESPACE, ("service_name",))
    settings = project.configuration(source)
    if environment != str(settings.get("environment") or "dev"):
        text = with_setting(text, file.name, NAMESPACE, ("environment",), environment)
    weights = settings.get("weights")
    if isinstance(weights, Mapping) and weights.get("create"):
        text = with_setting(text, file.name, NAMESPACE, ("weights", "create"), False)
    return text


def _encrypted_keys(content: Any, path: str = "") -> Iterator[str]:
    if isinstance(content, Mapping):
        if set(content) == {"secure"}:
            yield path.removeprefix("config.")
        for key, value in content.items():
            yield from _encrypted_keys(value, f"{path}.{key}" if path else str(key))
    elif isinstance(content, list):
        for number, value in enumerate(content):
            yield from _encrypted_keys(value, f"{path}.{number}")
