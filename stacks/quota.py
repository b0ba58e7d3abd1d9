"""Check of the project's quotas against the needs of a stack, before anything is declared.

A known shortage stops the run, in a preview as in an `up`. Previews also report unknown quotas, the use of quotas as
far as Cloud Monitoring or Cloud Run's list of services shows it, and shortages that may follow from that use.
"""

import pulumi

from bezel.planner import LeasePlan, Plan, Problem
from bezel.planner.assemble.quota import (
    Need,
    is_short,
    lease_needs,
    lease_shortage,
    leases_that_fit,
    request,
    service_needs,
    shortage,
    unknown,
)
from bezel.planner.assemble.quota_use import has_already, is_crowded, own_most, used_by_others
from bezel.planner.render.quota_lines import crowding, uncounted, use_line
from bezel.rest.cloud_quotas import Limit
from components.lookups.quota import Found, leases_there, look_up


def service_problems(plan: Plan, *, gated: bool) -> list[Problem]:
    """Check that the region has quota for a service; return a problem for each shortage.

    A service that already holds as much never stops the run: its shortage is only reported.
    """
    service = plan.service
    needs = service_needs(service, gated=gated)
    found = _look_up(plan.project, needs, service.region)
    problems: list[Problem] = []
    services = [] if isinstance(found.services, str) else found.services
    for need, allowed, counted in zip(needs, found.allowed, found.counted, strict=True):
        if isinstance(allowed, str):
            continue
        others = used_by_others(services, service.name, need.quota.id)
        holders = ", ".join(others.holders)
        if is_short(need, allowed, others.held):
            problem = shortage(need, allowed, project=plan.project, held=others.held, holders=holders)
            if has_already(services, service.name, need):
                _say(f"{problem.key}: {problem.consequence} What serves goes on; an update cannot. {problem.repair}")
            else:
                problems.append(problem)
        elif not isinstance(counted, str) and is_crowded(
            need, allowed, counted.used, own_most(services, service.name, need.quota.id)
        ):
            _say(crowding(need, allowed, counted, plan.project))
        elif need.quota.thing == "GPU" and is_short(need, allowed, others.most):
            _say(
                f"{need.quota.id}: this project has {allowed:.0f} in {need.place}, this stack may need {need.wanted}, "
                f"and its other services {others.most} with all their instances. Cloud Run may then refuse a revision, "
                "or start fewer instances."
            )
    _say_what_is_unknown(needs, found, plan.project)
    _say_what_is_used(needs, found, plan.project)
    if isinstance(found.services, str):
        _say(f"what other services of {service.region} use of its quotas is not known ({found.services}).")
    return problems


def lease_problems(plan: LeasePlan) -> list[Problem]:
    """Check that the zones of a lease together have quota for it. Existing leases already hold theirs."""
    terms = plan.terms
    needs = lease_needs(terms)
    found = _look_up(plan.project, needs)
    known = {need: value for need, value in zip(needs, found.allowed, strict=True) if not isinstance(value, str)}
    _say_what_is_unknown(needs, found, plan.project)
    _say_what_is_used(needs, found, plan.project)
    if len(known) == len(needs) and leases_that_fit(known) < len(terms.names):
        problem = lease_shortage(plan, known)
        if not leases_there(terms.back_end, plan.project, terms.names, [zone.zone for zone in terms.zones]):
            return [problem]
        _say(f"{problem.key}: {problem.consequence} What is leased stays; nothing can be leased anew. {problem.repair}")
    else:
        for need, value in known.items():
            if is_short(need, value):
                _say(
                    f"{need.place}: a lease needs {need.quota.told(need.wanted)}, this project has {value:.0f} there: "
                    f"it is passed over. `{request(need, plan.project, need.wanted)}` asks for more."
                )
        _say_what_is_crowded(plan, needs, found)
    return []


def _look_up(project: str, needs: tuple[Need, ...], region: str | None = None) -> Found:
    limits = [Limit(need.quota.service, need.quota.id, need.place, need.quota.dimensions) for need in needs]
    # Use is reported in previews and decides nothing: an `up` does not wait for it.
    return look_up(project, limits, region, use=pulumi.runtime.is_dry_run())


def _say_what_is_crowded(plan: LeasePlan, needs: tuple[Need, ...], found: Found) -> None:
    terms = plan.terms
    crowded = [
        (need, allowed, counted)
        for need, allowed, counted in zip(needs, found.allowed, found.counted, strict=True)
        if not isinstance(allowed, str) and not isinstance(counted, str)
        if is_crowded(need, allowed, counted.used, 0) and not is_short(need, allowed)
    ]
    # An existing lease is part of the counted use, and needs no more.
    if crowded and not leases_there(terms.back_end, plan.project, terms.names, [zone.zone for zone in terms.zones]):
        for need, allowed, counted in crowded:
            _say(crowding(need, allowed, counted, plan.project))


def _say_what_is_used(needs: tuple[Need, ...], found: Found, project: str) -> None:
    services = [] if isinstance(found.services, str) else found.services
    lines, unseen = [], dict[str, list[Need]]()
    for need, allowed, counted in zip(needs, found.allowed, found.counted, strict=True):
        if isinstance(allowed, str):
            continue
        lines.append(use_line(need, allowed, used_by_others(services, "", need.quota.id).held, counted))
        if isinstance(counted, str):
            unseen.setdefault(counted, []).append(need)
    lines += [uncounted(tuple(concerned), project, why) for why, concerned in unseen.items()]
    if lines and pulumi.runtime.is_dry_run():
        pulumi.log.info("quotas and their use:\n  " + "\n  ".join(lines))


def _say_what_is_unknown(needs: tuple[Need, ...], found: Found, project: str) -> None:
    by_reason: dict[str, list[Need]] = {}
    for need, value in zip(needs, found.allowed, strict=True):
        if isinstance(value, str):
            by_reason.setdefault(value, []).append(need)
    for why, concerned in by_reason.items():
        _say(unknown(tuple(concerned), project, why))


def _say(text: str) -> None:
    if pulumi.runtime.is_dry_run():
        pulumi.log.warn(text)
