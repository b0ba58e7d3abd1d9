"""Texts of problems that the rules of the planner share: keys of settings, and repairs by the known values.

Leaves out finding problems, which is the rules' part, and their layout (`bezel_base.errors`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_base.errors import Problem, UserError, format_value

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMESPACE = "bezel"
EXITS = "vLLM exits while it starts."
"""The consequence of most options that do not fit, as the end of a sentence."""


class PlanError(UserError):
    """The stack cannot work as it is set."""

    problems: tuple[Problem, ...]

    @classmethod
    def of(cls, problems: Iterable[Problem], stack: str) -> PlanError:
        """The error of a stack with these problems."""
        return cls(*problems, title=f"Stack {stack} cannot be planned")


def setting(path: str) -> str:
    """The full key of a setting, e.g. `scaling.max_instances` -> `bezel:scaling.max_instances`."""
    return f"{NAMESPACE}:{path}"


def one_of(values: Iterable[str], near: str | None) -> str:
    """The repair of an unknown value: the known ones, the one that was probably meant first."""
    listed = ", ".join(values)
    return f"did you mean {near}? Known: {listed}." if near else f"choose one of {listed}."


def of_option(name: str, value: object, consequence: str, repair: str) -> Problem:
    """A problem of one vLLM option."""
    return Problem(setting(f"vllm.{name}"), format_value(value), consequence, repair)
