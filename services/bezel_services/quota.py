"""Check of the project's quotas against the needs of a stack, before anything is declared.

A known shortage stops the run, in a preview as in an `up`. Previews also report unknown quotas, the use of quotas as
far as Cloud Monitoring or Cloud Run's list of services shows it, and shortages that may follow from that use: in the
log for people, and as facts of the run for whatever started it (`bezel_base.run_facts`).
"""

from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pulumi

from bezel.planner import LeasePlan, Plan, Problem
from bezel.planner.assemble.quota import (
    Need,
    Unread,
    is_short,
    lease_needs,
    lease_shortage,
    leases_that_fit,
    request,
    service_needs,
    shortage,
    unknown,
)
from bezel.planner.assemble.quota_use import (
    changed_since,
    crowding,
    has_already,
    is_crowded,
    own_most,
    tight_deploy,
    uncounted_warning,
    use_line,
    used_by_others,
    worst_moment,
)
from bezel.planner.base.deployment import ServicePlan
from bezel.rest.cloud_quotas import Limit
from bezel_base.run_facts import tell_fact
from bezel_components.lookups.quota import QuotaState, leases_there, look_up


def read_service_quotas(plan: Plan, *, gated: bool, is_preview: bool) -> Mapping[str, QuotaState]:
    """Read the quotas that a service needs, by region; needs no engine, so any thread may call it."""

    def read(service: ServicePlan) -> QuotaState:
        needs = service_needs(service, gated=gated, collector=plan.metrics)
        return _look_up(plan.project, needs, service.region, is_preview=is_preview)

    services = plan.services
    with ThreadPoolExecutor(len(services)) as pool:
        states = pool.map(read, services)
        return {service.region: state for service, state in zip(services, states, strict=True)}


def read_lease_quotas(plan: LeasePlan, *, is_preview: bool) -> QuotaState:
    """Read the quotas that a lease needs in its zones; needs no engine, so any thread may call it."""
    return _look_up(plan.project, lease_needs(plan.terms), is_preview=is_preview)


def service_problems(plan: Plan, service: ServicePlan, state: QuotaState, *, gated: bool) -> list[Problem]:
    """Check that a region has quota for its service; return a problem for each shortage.

    A service that already holds as much never stops the run: its shortage is only reported.
    """
    needs = service_needs(service, gated=gated, collector=plan.metrics)
    problems: list[Problem] = []
    services = _services(state)
    for need, allowed, counted in zip(needs, state.allowed, state.counted, strict=True):
        if isinstance(allowed, Unread):
            continue
        others = used_by_others(services, service.name, need.quota.id)
        own_use = own_most(services, service.name, need.quota.id)
        if is_short(need, allowed, others.certain):
            holders = ", ".join(others.holders)
            problem = shortage(need, allowed, project=plan.project, used=others.certain, holders=holders)
            if has_already(services, service.name, need):
                _warn(
                    f"{problem.key}: {problem.consequence} The present revision keeps serving; an update fails. "
                    f"{problem.repair}"
                )
            else:
                problems.append(problem)
            continue
        if not isinstance(counted, Unread) and is_crowded(need, allowed, counted.used, own_use):
            _warn(crowding(need, allowed, counted, plan.project))
        if warning := tight_deploy(worst_moment(need, services, service.name), allowed, plan.project):
            _warn(warning)
    _report(needs, state, plan.project, service.name)
    if isinstance(state.services, Unread):
        _warn(
            f"the use of quotas by other services of {service.region} is not known ({state.services.reason}): what "
            "they and an old revision may hold during this deploy is not judged."
        )
    return problems


def may_be_deployed(service: ServicePlan, state: QuotaState) -> bool:
    """Whether a service is there already, as far as the services of its region may be listed."""
    if isinstance(state.services, Unread):
        return True
    return any(str(each.get("name")).rpartition("/")[2] == service.name for each in state.services)


def lease_problems(plan: LeasePlan, state: QuotaState) -> list[Problem]:
    """Check that the zones of a lease together have quota for it. Existing leases already hold theirs."""
    terms = plan.terms
    needs = lease_needs(terms)
    allowed_amounts = {
        need: value for need, value in zip(needs, state.allowed, strict=True) if not isinstance(value, Unread)
    }
    _report(needs, state, plan.project)
    if len(allowed_amounts) == len(needs) and leases_that_fit(allowed_amounts) < len(terms.names):
        problem = lease_shortage(plan, allowed_amounts)
        if not _exist(plan):
            return [problem]
        _warn(f"{problem.key}: {problem.consequence} Existing leases stay; new ones are refused. {problem.repair}")
        return []
    for need, value in allowed_amounts.items():
        if is_short(need, value):
            _warn(
                f"{need.place}: a lease needs {need.quota.describe(need.amount)}, this project has {value:.0f} there: "
                f"the zone is skipped. `{request(need, plan.project, need.amount)}` requests more."
            )
    crowded = [
        (need, allowed, counted)
        for need, allowed, counted in zip(needs, state.allowed, state.counted, strict=True)
        if not isinstance(allowed, Unread) and not isinstance(counted, Unread)
        if is_crowded(need, allowed, counted.used, 0) and not is_short(need, allowed)
    ]
    # An existing lease is part of the counted use, and needs no more.
    if crowded and not _exist(plan):
        for need, allowed, counted in crowded:
            _warn(crowding(need, allowed, counted, plan.project))
    return []


def _exist(plan: LeasePlan) -> bool:
    terms = plan.terms
    return leases_there(terms.back_end, plan.project, terms.names, [zone.zone for zone in terms.zones])


def _look_up(project: str, needs: tuple[Need, ...], region: str | None = None, *, is_preview: bool) -> QuotaState:
    limits = [Limit(need.quota.service, need.quota.id, need.place, need.quota.dimensions) for need in needs]
    # Use is reported in previews and decides nothing: an `up` does not wait for it.
    return look_up(project, limits, region, use=is_preview)


def _services(state: QuotaState) -> list[dict[str, Any]]:
    return [] if isinstance(state.services, Unread) else state.services


def _report(needs: tuple[Need, ...], state: QuotaState, project: str, own_service: str = "") -> None:
    """Report in a preview what is not known, and the use of what is known; `own_service` is the service's name."""
    services = _services(state)
    lines: list[str] = []
    unread, unseen = defaultdict[Unread, list[Need]](list), defaultdict[Unread, list[Need]](list)
    for need, allowed, counted in zip(needs, state.allowed, state.counted, strict=True):
        if isinstance(allowed, Unread):
            unread[allowed].append(need)
            continue
        line = use_line(
            need,
            allowed,
            used_by_others(services, "", need.quota.id).certain,
            counted,
            moment=worst_moment(need, services, own_service) if own_service else None,
            changed=() if isinstance(counted, Unread) else changed_since(services, counted.age, state.read_at),
        )
        lines.append(line)
        if isinstance(counted, Unread):
            unseen[counted].append(need)
    for why, concerned in unread.items():
        _warn(unknown(tuple(concerned), project, why.reason))
    lines += [uncounted_warning(concerned, project, why) for why, concerned in unseen.items()]
    if lines and pulumi.runtime.is_dry_run():
        pulumi.log.info("quotas and their use:\n  " + "\n  ".join(lines))
        for line in lines:
            tell_fact("quota_use", line)


def _warn(text: str) -> None:
    if pulumi.runtime.is_dry_run():
        pulumi.log.warn(text)
        tell_fact("quota_warning", text)
