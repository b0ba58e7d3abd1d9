"""Optional regions that a deploy leaves out, as the project has no quota for them.

An optional region that serves already stays: to leave it out would delete its service, so its shortage stops the run as
that of any other region. Capacity is another matter: it is known only once Cloud Run starts an instance, when a deploy
cannot go on without the region any more.
"""

from collections.abc import Mapping
from dataclasses import replace

import pulumi

from bezel.planner import Plan, Problem
from bezel_base.run_facts import tell_fact
from bezel_components.lookups.quota import QuotaState
from bezel_services.quota import may_be_deployed


def leave_out_regions(plan: Plan, quotas: Mapping[str, QuotaState], short: Mapping[str, list[Problem]]) -> Plan:
    """A plan without the optional regions that have too little quota; a warning names each.

    Args:
        plan: The plan.
        quotas: Region -> its quotas.
        short: Region -> its shortages, as far as there are any.
    """
    by_region = {service.region: service for service in plan.services}
    reasons = {
        each.region: short[each.region]
        for each in plan.regions
        if each.optional and short.get(each.region)
        if not may_be_deployed(by_region[each.region], quotas[each.region])
    }
    for region, problems in reasons.items():
        for problem in problems:
            text = f"{region} is optional, and left out of this deploy: {problem.consequence} Repair: {problem.repair}"
            pulumi.log.warn(text)
            tell_fact("quota_warning", text)
    return replace(plan, regions=tuple(each for each in plan.regions if each.region not in reasons))
