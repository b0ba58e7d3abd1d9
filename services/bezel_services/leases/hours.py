"""Hours of a stack's leases as resources: the jobs that request and return them, and what makes the checks run again.

Leaves the leases, the gateway and the checks to `bezel_services.lease`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pulumi

from bezel.leases.requests import ZoneChoice
from bezel.planner import LeasePlan
from bezel.planner.base.names import ACCOUNT_LENGTH, resource_name
from bezel_components.identity_gateway import IdentityGateway
from bezel_components.lease_hours import LeaseHours, LeaseHoursArgs
from bezel_components.node_network import NodeNetwork
from bezel_components.runtime_identity import RuntimeIdentity
from bezel_components.scheduling_identity import SchedulingIdentity, SchedulingIdentityArgs
from bezel_components.tpu_lease import TpuLease
from bezel_services import environment
from bezel_services.children import Children
from bezel_smoke.benchmark import ShortBenchmark


def checks_of(plan: LeasePlan, gateway: IdentityGateway) -> pulumi.Output[str]:
    """Fingerprint of whatever makes the checks run again, beside the lease itself: they need a lease at any time."""
    served = [plan.served_model, plan.settings.access.public, environment.is_simulated()]
    return _fingerprint([gateway.resource_name, gateway.declared, asdict(plan.smoke), served])


def schedule(
    plan: LeasePlan,
    children: Children,
    network: NodeNetwork,
    identity: RuntimeIdentity,
    bodies: Mapping[str, Mapping[str, Any]],
    leases: Mapping[str, TpuLease],
    benchmark: ShortBenchmark,
) -> None:
    """Declare the jobs of each lease, after the checks.

    Args:
        plan: Plan of the service, whose leases have hours.
        children: Children of its component.
        network: Network of the machines.
        identity: Account that the machines run as.
        bodies: Name of a lease -> its request without a zone.
        leases: Name -> lease.
        benchmark: Last of the checks.
    """
    terms, zone = plan.terms, plan.terms.zones[0]
    scheduling = SchedulingIdentity(
        children.name_of("scheduling"),
        SchedulingIdentityArgs(
            project=plan.project,
            account_id=resource_name(plan.stack, suffix="hours", length=ACCOUNT_LENGTH),
            runtime_account=identity.email,
            back_end=terms.back_end,
            stack=plan.stack,
        ),
        opts=children.after(identity),
    )
    checked = _fingerprint(benchmark.figures)
    for number, (name, lease) in enumerate(leases.items()):
        LeaseHours(
            children.name_of(f"hours-{number}" if number else "hours"),
            LeaseHoursArgs(
                project=plan.project,
                location=plan.gateway.region,
                name=name,
                stack=plan.labels["stack"],
                back_end=terms.back_end,
                zone=ZoneChoice(zone.zone, zone.patience_seconds),
                subnetwork=network.subnetworks[zone.region],
                body=bodies[name],
                windows=terms.hours,
                account=scheduling.email,
                request=lease.request,
                checked=checked,
            ),
            opts=children.after(scheduling, lease, benchmark),
        )


def _fingerprint(value: Any) -> pulumi.Output[str]:
    text = pulumi.Output.json_dumps(value, default=vars, sort_keys=True)
    return text.apply(lambda resolved: hashlib.sha256(resolved.encode()).hexdigest()[:16])
