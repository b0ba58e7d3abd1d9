"""Check of the subnetwork that a service sends through, before anything is declared; nothing where it has none."""

import pulumi

from bezel.planner import Plan, Problem
from bezel.planner.rules.network_checks import check_subnetwork, subnetwork_name
from bezel.rest import RestError
from components.lookups.network import look_up_subnetwork


def subnetwork_problems(plan: Plan) -> list[Problem]:
    """Problems of a missing or unfit subnetwork; in previews, a warning about what cannot be checked."""
    if plan.service.vpc is None:
        return []
    name = subnetwork_name(plan.service.vpc, plan.project, plan.service.region)
    try:
        found = look_up_subnetwork(name)
    except RestError as error:
        if pulumi.runtime.is_dry_run():
            pulumi.log.warn(f"{name} could not be looked at ({error}). If it is not there, the deploy fails.")
        return []
    return check_subnetwork(name, found, plan.service)
