"""Optional regions that a deploy leaves out, as the project has no quota for them.

An optional region that serves already stays: to leave it out would delete its service, so its shortage stops the run.
Capacity is another matter: it is known only once Cloud Run starts an instance, when a deploy cannot leave the region
out any more (`regions.failure`).
"""

from collections.abc import Iterator, Mapping

import pulumi

from bezel.planner import Plan, Problem
from bezel.planner.assemble.left_out import without_regions
from bezel.planner.assemble.region_quota import judge_shortages
from bezel.planner.base.problems import setting
from bezel_base.run_facts import tell_fact
from bezel_components.base.caller_names import in_caller_words
from bezel_components.lookups.quota import QuotaState
from bezel_services.quota import may_be_deployed


def leave_out_regions(
    plan: Plan, quotas: Mapping[str, QuotaState], short: Mapping[str, list[Problem]]
) -> tuple[Plan, list[Problem]]:
    """A plan without the optional regions that have too little quota, and the shortages that refuse the stack.

    A warning names each region that is left out.

    Args:
        plan: The plan.
        quotas: Region -> its quotas.
        short: Region -> its shortages, as far as there are any.
    """
    optional = {each.region for each in plan.regions if each.optional}
    serving = {
        service.region
        for service in plan.services
        if service.region in optional and may_be_deployed(service, quotas[service.region])
    }
    refused, reasons = judge_shortages(plan, {key: short[key] for key in short if key not in serving})
    fitting = without_regions(plan, reasons)
    for text in fitting.warnings if reasons else ():
        if text not in plan.warnings:
            pulumi.log.warn(in_caller_words(text))
            tell_fact("quota_warning", text)
    kept = (problem for region in sorted(serving) for problem in _serving(region, short.get(region, [])))
    return fitting, [*refused, *kept]


def _serving(region: str, problems: list[Problem]) -> Iterator[Problem]:
    """The shortages of an optional region that has a service."""
    for problem in problems:
        consequence = f"{problem.consequence} It is optional, but without it its service there would be deleted."
        yield Problem(setting("optional_regions"), region, consequence, problem.repair)
