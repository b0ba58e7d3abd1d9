"""Checks of the addresses of stacks: the zone of their records, and of deployed ones what callers meet there.

A zone has to be in the project and hold the domain: the records would be refused, or no resolver would ask for them.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from bezel.operations.address.certificate import Certificate, certificate_of
from bezel.operations.address.reach import reach_of
from bezel.operations.context import Context, NotDeployedError
from bezel.operations.deployment.address import DeployedAddress
from bezel.operations.doctor.check import Check, Job, State, check
from bezel.operations.doctor.cloud_checks import Plans
from bezel.planner.address.domain_checks import check_zone
from bezel.planner.assemble.plan import AddressPlan
from bezel.rest import ApiError, GoogleClient


def address_jobs(context: Context, client: GoogleClient, plans: Plans) -> list[Job]:
    """Checks of the address of each plan that has one."""
    jobs = []
    for stack, (plan, project) in plans.items():
        address = plan.address
        if address is None or project is None:
            continue
        if address.zone:
            jobs.append(Job("address", address.zone, partial(_zone, context, client, project, address)))
        jobs.append(Job("address", stack, partial(_address, context, stack, address)))
    return jobs


def _zone(context: Context, client: GoogleClient, project: str, address: AddressPlan) -> Iterable[Check]:
    """The zone that the records are made in."""
    subject = f"zone {address.zone}"
    zone: dict[str, Any] | None = None
    try:
        zone = client.get(f"{context.address('DNS')}projects/{project}/managedZones/{address.zone}")
    except ApiError as error:
        if error.status != 404:
            raise
    problems = [
        check("address", subject, "problem", each.consequence, each.repair)
        for each in check_zone(address.domain, address.zone, zone, project)
    ]
    return problems or [check("address", subject, "ok", f"it holds {address.domain}")]


def _address(context: Context, stack: str, planned: AddressPlan) -> Iterable[Check]:
    """What a caller of the deployed address meets."""
    try:
        address = context.deployment(stack).address
    except NotDeployedError:
        address = None
    if address is None:
        return [check("address", stack, "ok", f"{planned.domain} is made by the next deploy")]
    reach = reach_of(context, address, stack)
    certificate = certificate_of(context, address, stack)
    if not reach.why:
        return [check("address", stack, "ok", f"{address.url} answers; its certificate is {certificate.line()}")]
    checks = [check("address", stack, "warning", f"{address.url} does not answer: {reach.why}", f"{reach.repair}.")]
    return [*checks, *_certificate(stack, address, certificate)]


def _certificate(stack: str, address: DeployedAddress, certificate: Certificate) -> Iterable[Check]:
    """The certificate, where it is not the reason that was named already."""
    subject = f"certificate of {address.domain}"
    if certificate.state == "active":
        return [check("address", subject, "ok", "active")]
    state: State = "problem" if certificate.state in {"failed", "gone"} else "warning"
    if certificate.state == "unknown":
        state = "unknown"
    return [check("address", f"{subject}, {stack}", state, certificate.line(), f"{certificate.repair}.")]
