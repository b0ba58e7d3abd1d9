"""Repairs that set a number: their wording, and the same text with numbers that further limits allow. Pure.

A plan knows the stack's own limits. The policies of a pipeline have others, so that a repair of the plan could be
refused by the next policy, and two policies could name two numbers for one value. Leaves out what the limits are.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from bezel.planner.base.problems import setting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_STEP = re.compile(r"(?P<verb>raise|lower) `(?P<key>[\w:.]+)` to (?P<number>\d+(?:\.\d+)?)")
# A repair, and before it the setting and the number that it repairs, in the usual layout (bezel_base.errors).
_REPAIR = re.compile(
    r"(?P<problem>(?:(?P<key>bezel:[\w.]+) = (?P<number>\d+(?:\.\d+)?)\n(?:[^\n]+\n)*?)?[^\n]*?\bRepair: )"
    r"(?P<text>[^\n]+)"
)
_OR = ", or "
QUOTA = "request "
"""Begin of the alternative that requests a larger quota, and leaves a number as it is."""
# No service has a maximum of 0 instances: where not even one is allowed, lowering it repairs nothing.
_MAXIMUM = setting("scaling.max_instances")


def to_number(verb: Literal["raise", "lower"], path: str, number: object) -> str:
    """The repair `lower `bezel:scaling.max_instances` to 2`, of a setting's path."""
    return f"{verb} `{setting(path)}` to {number}"


def lowest_numbers(texts: Iterable[str]) -> dict[str, Decimal]:
    """The lowest number to which the texts lower each key: the only one that all of them allow."""
    lowest: dict[str, Decimal] = {}
    for step in (step for text in texts for step in _STEP.finditer(text)):
        if step["verb"] == "lower":
            number = Decimal(step["number"])
            lowest[step["key"]] = min(number, lowest.get(step["key"], number))
    return lowest


def within(text: str, bounds: Mapping[str, Decimal]) -> str:
    """A text whose repairs keep to bounds: a number is lowered to its bound, and a raise above it is left out.

    Args:
        text: with problems in their usual layout (bezel_base.errors).
        bounds: full key of a setting -> the most that is allowed.
    """
    return _REPAIR.sub(lambda match: match["problem"] + _repair_within(match, bounds), text)


def _repair_within(match: re.Match[str], bounds: Mapping[str, Decimal]) -> str:
    repair, key = str(match["text"]), match["key"]
    if not any(step["key"] in bounds for step in _STEP.finditer(repair)):
        return repair
    alternatives = [text for text in repair.removesuffix(".").split(_OR) if not _is_refused(text, bounds)]
    if key in bounds and Decimal(match["number"]) > bounds[key]:
        alternatives = [text for text in alternatives if not text.startswith(QUOTA)]  # it stays above its bound
    return (
        _OR.join(_lower_numbers(text, bounds) for text in alternatives) or "choose what the limits below allow"
    ) + "."


def _is_refused(alternative: str, bounds: Mapping[str, Decimal]) -> bool:
    """Whether a step of an alternative leads above its bound."""
    return any(
        step["key"] in bounds
        and (step["verb"] == "raise" or (step["key"] == _MAXIMUM and not bounds[_MAXIMUM]))
        and Decimal(step["number"]) > bounds[step["key"]]
        for step in _STEP.finditer(alternative)
    )


def _lower_numbers(alternative: str, bounds: Mapping[str, Decimal]) -> str:
    def lower(step: re.Match[str]) -> str:
        number = Decimal(step["number"])
        bound = bounds.get(step["key"], number)
        return step[0].removesuffix(step["number"]) + str(min(number, bound))

    return _STEP.sub(lower, alternative)
