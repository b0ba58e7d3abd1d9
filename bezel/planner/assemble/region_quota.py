"""Shortages of quota in several regions: a required region refuses the stack, an optional one is left out. Pure.

Leaves what a service needs and whether a quota is too small to `bezel.planner.assemble.quota`, and the plan of the
other regions to `bezel.planner.assemble.left_out`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.address.region_checks import region_key
from bezel.planner.base.problems import setting
from bezel_base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bezel.planner.assemble.plan import Plan


def judge_shortages(
    plan: Plan, shortages: Mapping[str, Sequence[Problem]]
) -> tuple[tuple[Problem, ...], dict[str, str]]:
    """What the shortages of a plan's regions lead to.

    Args:
        plan: of a service in one region or several.
        shortages: region -> its problems, as `shortage` of `bezel.planner.assemble.quota` words them.

    Returns:
        The problems that refuse the stack, each with its region; and the optional regions that are left out, each with
        the reason.
    """
    optional = {each.region for each in plan.regions if each.optional}
    reasons = {
        region: " ".join(f"{problem.consequence} {_sentence(problem.repair)}" for problem in problems)
        for region, problems in shortages.items()
        if problems and region in optional
    }
    refused = (
        _in_region(plan, region, problem)
        for region, problems in shortages.items()
        for problem in problems
        if region not in optional
    )
    return tuple(refused), reasons


def _in_region(plan: Plan, region: str, problem: Problem) -> Problem:
    """A problem of one of several regions; with one region the problem as it is."""
    if len(plan.regions) == 1:
        return problem
    repair = problem.repair
    if region != plan.regions[0].region:
        repair = f"add {region} to `{setting('optional_regions')}`, so that the others are deployed, or {repair}"
    return Problem(setting(region_key(plan.settings, region)), region, problem.consequence, repair)


def _sentence(text: str) -> str:
    """A text that begins as a sentence does."""
    return text[:1].upper() + text[1:]
