"""Settings that a caller gives as `KEY=VALUE`, or names to be removed: paths, values, and every problem of them. Pure.

Owns which keys may be written: those of the project's settings, never another namespace, what encrypts a stack's
secrets, or an encrypted value. Leaves out what a setting may be, which the planner says.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bezel.planner.base.problems import NAMESPACE
from bezel.planner.base.stack_file import StackFileError, read_stack_file
from bezel_base.errors import ENCRYPTED, Problem, WrongValueError
from bezel_base.text.shell import shell_word

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_MOST_PARTS = 6
_ENGINE_KEYS = ("encryptionsalt", "encryptedkey", "secretsprovider", "config")


@dataclass(frozen=True)
class Assignment:
    """A setting and its new value; `is_removed` where it gets none."""

    path: tuple[str, ...]
    value: Any = None
    is_removed: bool = False

    @property
    def name(self) -> str:
        """The setting's path, e.g. `scaling.max_instances`."""
        return ".".join(self.path)


def assignments_of(set_texts: Iterable[str], removed: Iterable[str], stack: str) -> tuple[Assignment, ...]:
    """What is to be written into a stack's file, removals first.

    Args:
        set_texts: Settings as `KEY=VALUE`, the value in YAML.
        removed: Keys of settings.
        stack: The stack's name, for repairs.

    Raises:
        WrongValueError: Something of it cannot be written; holds every problem.
    """
    problems: list[Problem] = []
    made: dict[tuple[str, ...], Assignment] = {}
    for key, text in [*((key, None) for key in removed), *(_split(text) for text in set_texts)]:
        path = _path(key)
        key_problems = list(_problems_of_key(key, path, stack))
        if text is None and key not in removed:
            key_problems.append(
                Problem("--set", key, "it has no value.", "write KEY=VALUE, e.g. scaling.max_instances=2.")
            )
        if not key_problems and text is not None:
            try:
                made_value = _value(key, text, stack)
            except WrongValueError as error:
                key_problems += [each for each in error.problems if isinstance(each, Problem)]
            else:
                key_problems += _clash(path, made)
                made[path] = Assignment(path, made_value)
        elif not key_problems:
            key_problems += _clash(path, made)
            made[path] = Assignment(path, is_removed=True)
        problems += key_problems
    if problems:
        raise WrongValueError(*problems)
    return tuple(made.values())


def _split(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    return key.strip(), value.strip() if equals else None


def _path(key: str) -> tuple[str, ...]:
    return tuple(key.removeprefix(f"{NAMESPACE}:").split("."))


def _problems_of_key(key: str, path: tuple[str, ...], stack: str) -> Iterator[Problem]:
    if ":" in path[0]:
        consequence = f"expected a setting of the namespace {NAMESPACE}: no other key is written."
        yield Problem(key, None, consequence, f"a person writes it into Pulumi.{stack}.yaml.")
    elif path[0] in _ENGINE_KEYS:
        consequence = "it is the engine's own key: it says what encrypts the stack's secrets, or where settings begin."
        yield Problem(key, None, consequence, "leave it out; `bezel explain` names the settings.")
    elif len(path) > _MOST_PARTS or not all(_PART.fullmatch(part) for part in path):
        consequence = "expected the path of a setting: words with points between them."
        yield Problem(
            key[:100] or "KEY", None, consequence, "write e.g. scaling.max_instances; a list is set as a whole."
        )


def _clash(path: tuple[str, ...], made: Mapping[tuple[str, ...], Assignment]) -> Iterator[Problem]:
    for other in made:
        shorter = min(len(path), len(other))
        if path[:shorter] == other[:shorter]:
            consequence = f"{'.'.join(other)} is given too, and one of them would be lost."
            yield Problem(".".join(path), None, consequence, "give one of them.")


def _value(key: str, text: str, stack: str) -> Any:
    """The value of a text in YAML: a word that YAML readers take for different things is the text that it is.

    Raises:
        WrongValueError: It is no value.
    """
    if text.startswith("!"):
        raise WrongValueError(
            Problem(key, text, "no setting has a type of its own.", "remove the tag, or quote the text.")
        )
    try:
        value, problems = read_stack_file(text, key)
    except StackFileError as error:
        first = error.problems[0]
        cause = first.consequence if isinstance(first, Problem) else str(first)
        reason = " ".join(cause.rpartition("cannot be read: ")[2].split())
        raise WrongValueError(
            Problem(key, text, f"it is not a value in YAML: {reason}", "quote a text: KEY='\"TEXT\"'.")
        ) from None
    if value is None and text not in ("null", "~"):
        consequence = "it has no value: YAML takes it for nothing."
        raise WrongValueError(
            Problem(key, text, consequence, "quote a text: KEY='\"TEXT\"'; --unset removes a setting.")
        )
    if problems and not isinstance(value, str):
        raise WrongValueError(*problems)
    if any(_find_encrypted(value)):
        consequence = "an encrypted value belongs to its stack's key, and is not written by hand."
        repair = f"store it: `bezel secret set NAME --stack {shell_word(stack)}`, and name it in the key secrets."
        raise WrongValueError(Problem(key, ENCRYPTED, consequence, repair))
    return value


def _find_encrypted(value: Any) -> Iterator[bool]:
    if isinstance(value, dict):
        yield "secure" in value
        for below in value.values():
            yield from _find_encrypted(below)
    elif isinstance(value, list):
        for below in value:
            yield from _find_encrypted(below)
