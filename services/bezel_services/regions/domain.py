"""Check of a domain before anything is declared: what would stop its address at the end of a deploy stops it here."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pulumi

from bezel.planner import AnyPlan, Problem
from bezel.planner.address.domain_checks import check_owner, check_records, check_zone, names_to_read, record_notes
from bezel.rest import RestError
from bezel_base.errors import one_line
from bezel_components.lookups.domain import look_up_certificates, look_up_domain


def domain_problems(plan: AnyPlan, present_url: str) -> list[Problem]:
    """Problems of a plan's domain; in previews, warnings about what cannot be read, and about callers of today.

    Args:
        plan: Plan of the service.
        present_url: URL of the address that the stack has; "" without one.
    """
    if plan.address is None:
        return []
    checks = [partial(_owner_problems, plan)]
    if plan.address.zone:
        checks.append(partial(_zone_problems, plan, present_url))
    return [problem for check in checks for problem in _run_check(plan, check)]


def _run_check(plan: AnyPlan, check: Callable[[], Iterable[Problem]]) -> list[Problem]:
    try:
        return list(check())
    except RestError as error:
        if pulumi.runtime.is_dry_run() and plan.address:
            pulumi.log.warn(f"{plan.address.domain} could not be checked: {one_line(error)}")
        return []


def _owner_problems(plan: AnyPlan) -> Iterator[Problem]:
    assert plan.address is not None  # noqa: S101 - called only with one
    yield from check_owner(plan.address.domain, look_up_certificates(plan.project), plan.stack)


def _zone_problems(plan: AnyPlan, present_url: str) -> Iterator[Problem]:
    address = plan.address
    assert address is not None  # noqa: S101 - called only with one
    state = look_up_domain(plan.project, address.zone, partial(names_to_read, address.domain))
    yield from check_zone(address.domain, address.zone, state.zone, plan.project)
    yield from check_records(address.domain, address.zone, state.records)
    if pulumi.runtime.is_dry_run() and present_url != address.url:
        for note in record_notes(address.domain, state.records):
            pulumi.log.warn(note)
