"""Platform limits on variables and labels: number, lengths, and characters that cannot be passed.

Owns documented limits as rules over plain values. Sources, read in 2026-11: Cloud Run's quotas and its page on
variables, the discovery document of run v2 (EnvVar: name and value), Resource Manager's requirements for labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.errors import NOT_SHOWN, Problem, shown
from bezel.planner.base.problems import setting

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_VARIABLES = 1000
LONGEST_NAME = 32_768  # characters
LONGEST_VALUE = 32_768  # bytes
_PLATFORMS_OWN = "X_GOOGLE_"
_IN_ONE_LINE = (
    "a leased machine hands variables over line by line: nothing would start, and the machine is paid for.",
    "write it in one line.",
)
MOST_LABELS = 64  # of one resource, Bezel's own included


def check_variable_limits(
    variables: Mapping[str, str], planned: Mapping[str, str], secrets: Mapping[str, str], *, leased: bool
) -> list[Problem]:
    """Check number, lengths and characters of the container's variables.

    Args:
        variables: of the stack file, those to check.
        planned: all others.
        secrets: variables that get a secret's value.
        leased: whether the container runs on a leased machine, which passes variables line by line.
    """
    problems = []
    names = {*variables, *planned, *secrets}
    if not leased and len(names) > MOST_VARIABLES:
        problems.append(
            Problem(
                setting("variables"),
                f"{len(names)} variables",
                f"those of the plan and of secrets among them; Cloud Run takes {MOST_VARIABLES} for a container.",
                f"remove {len(names) - MOST_VARIABLES} of them.",
            )
        )
    for name, value in variables.items():
        why = _unfit(name, value, leased=leased)
        if why:
            problems.append(Problem(setting(f"variables.{shown(name)}"), _short(value), *why))
    return problems


def _unfit(name: str, value: str, *, leased: bool) -> tuple[str, str] | None:
    """Consequence and repair; None where it fits."""
    if "\0" in value:
        return "no process can be given a NUL: the revision is refused.", "remove the character."
    if leased:
        return _IN_ONE_LINE if "\n" in value or "\r" in value else None
    if name.startswith(_PLATFORMS_OWN):
        return f"Cloud Run keeps names that begin with {_PLATFORMS_OWN} for itself.", "choose another name."
    if len(name) > LONGEST_NAME:
        return f"Cloud Run refuses names above {LONGEST_NAME} characters.", "shorten it."
    size = len(value.encode())
    if size > LONGEST_VALUE:
        return (
            f"it has {size} bytes; Cloud Run refuses values above {LONGEST_VALUE}.",
            "put the content into a file of the bucket, and its path here.",
        )
    return None


def _short(value: str) -> str:
    text = shown(value)
    return text if text == NOT_SHOWN else text[:80]


def check_label_count(labels: Mapping[str, str], own: Mapping[str, str]) -> list[Problem]:
    """Check the number of a resource's labels.

    Args:
        labels: of the stack file.
        own: all labels of a resource, those of the stack file among them.
    """
    if len(own) <= MOST_LABELS:
        return []
    return [
        Problem(
            setting("labels"),
            f"{len(labels)} labels",
            f"with {len(own) - len(labels)} of the stack's own a resource has more than the {MOST_LABELS} it may.",
            f"remove {len(own) - MOST_LABELS} of them.",
        )
    ]
