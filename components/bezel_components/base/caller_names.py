"""Names of arguments in messages, as the Pulumi package's schema has them: `maxInstances` for `max_instances`.

A program in Python reads its own names, and there nothing changes. The process of the package serves programs in other
languages, which have the names of the schema (Go's begin with a capital). Values are left as they are.
"""

import re
from collections.abc import Iterable

from bezel_base.errors import Problem
from bezel_components.base.check_resource import snake_case

# Options of every resource that a message may name.
_OPTIONS = {"depends_on": "dependsOn"}
_CONSTANTS = {"True": "true", "False": "false"}
_QUOTED = re.compile(r'"([\w./-]+)"')


class SchemaNames:
    """The names of a schema's properties.

    Args:
        keys: The names as the schema has them.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        all_keys = set(keys)
        self._names = {snake_case(key): key for key in all_keys if snake_case(key) != key} | _OPTIONS
        any_name = "|".join(sorted(all_keys | set(self._names), key=len, reverse=True))
        changed_name = "|".join(sorted(self._names, key=len, reverse=True))
        # In Python's spelling: `public=True`, `rollout="direct"`, `weights={"loading": "fuse"}`; no command's option.
        self._assigned = re.compile(rf'(?<![\w-])({any_name})=(True|False|"[\w./-]+"|\{{[^{{}}]*\}})')
        self._word = re.compile(rf"\b({changed_name})\b")

    def in_text(self, text: str) -> str:
        """A text with the names of the schema."""
        text = self._assigned.sub(lambda match: f"{match[1]}: {_plain(match[2])}", text)
        return self._word.sub(lambda match: self._names[match[1]], text)

    def in_problem(self, problem: Problem | str) -> Problem | str:
        """A problem with the names of the schema; its value stays."""
        if isinstance(problem, str):
            return self.in_text(problem)
        key, consequence, repair = map(self.in_text, (problem.key, problem.consequence, problem.repair))
        return Problem(key, problem.value, consequence, repair)


def _plain(value: str) -> str:
    """A value of Python's as YAML writes it."""
    return _CONSTANTS.get(value) or _QUOTED.sub(r"\1", value)


_schema: SchemaNames | None = None


def use_names(names: SchemaNames) -> None:
    """Have messages of this process name arguments as a schema does: for the package's own process."""
    global _schema  # noqa: PLW0603 - a process either hosts the package or runs a program
    _schema = names


def in_caller_words(text: str) -> str:
    """A message as who reads it names the arguments."""
    return text if _schema is None else _schema.in_text(text)


def problem_in_caller_words(problem: Problem | str) -> Problem | str:
    """A problem as who reads it names the arguments."""
    return problem if _schema is None else _schema.in_problem(problem)
