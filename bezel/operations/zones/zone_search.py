"""Availability and cost of a stack's hardware in each zone, by three independent checks.

That the hardware exists in a zone, that the zone takes the provisioning model, and that it has capacity at the moment
do not imply each other. Leaves requests to `bezel.leases.availability`, and printing.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from bezel.leases.availability import PROBE_STACK, probe
from bezel.leases.backends.interface import NOT_FOUND, no_such_zone
from bezel.leases.clock import PlatformClock
from bezel.leases.inventory import back_end_of, new_client
from bezel.leases.names import labels
from bezel.leases.requests import PROVISIONING_MODELS, LeaseSpec, ZoneChoice, instance_body, queued_body
from bezel.planner import LeasePlan
from bezel.planner.assemble.quota import lease_quota
from bezel.planner.base.money import lasting, text
from bezel.planner.cost.lease_cost import lease_cost
from bezel.rest import ApiError, GoogleClient, endpoint
from bezel.rest.cloud_quotas import Limit, quota_of
from bezel_base.errors import Problem, UserError

PROBE_RUN_SECONDS = 600
"""The platform's shortest run duration, which limits the cost of a probe."""
FINDING_COLUMNS = ("zone", "hardware", "provisioning model", "quota", "USD per hour", "capacity now")


def find(
    plan: LeasePlan,
    zones: Sequence[str],
    clock: PlatformClock,
    *,
    probe_seconds: int | None,
    show: Callable[[str], None],
) -> list[dict[str, str]]:
    """Return one row for each zone, with the columns of FINDING_COLUMNS.

    Args:
        plan: Plan of the stack whose hardware is looked for.
        zones: Zones to look in.
        clock: The platform's clock.
        probe_seconds: Time to wait for capacity in each zone; None to request none.
        show: Takes each line about progress or about a request that failed; a repeated line once.
    """
    shown: set[str] = set()

    def show_once(line: str) -> None:
        if line not in shown:
            shown.add(line)
            show(line)

    with new_client(clock) as client:
        return [_row(client, clock, plan, zone, probe_seconds, show_once) for zone in zones]


def _row(
    client: GoogleClient,
    clock: PlatformClock,
    plan: LeasePlan,
    zone: str,
    probe_seconds: int | None,
    show: Callable[[str], None],
) -> dict[str, str]:
    terms = plan.terms
    hardware, back_end = terms.hardware, back_end_of(terms.back_end, client, plan.project)
    kind = hardware.id if terms.back_end == "queued_resource" else hardware.machine_type
    present = _result_or_reason(lambda: "yes" if back_end.has_hardware(zone, kind) else "no", show)
    cost = lease_cost(hardware, zone=zone, provisioning=terms.provisioning, own_prices=plan.settings.cost.prices)
    capacity = "not probed (--probe)" if probe_seconds is None else "-"
    if probe_seconds is not None and present == "yes":
        wait, limit = probe_seconds, text(lasting(cost.hourly, PROBE_RUN_SECONDS), 2)
        show(f"{zone}: requests one real {hardware.id} that ends by itself after 10 min; USD at most: {limit}")
        capacity = _result_or_reason(
            lambda: probe(back_end, _spec(plan, zone, wait, _network(client, plan, zone)), clock, wait, show).result,
            show,
        )
    taken = "accepted" if zone in hardware.zones else "refused" if zone in hardware.zones_refused else "unknown"
    model = taken if terms.provisioning == "flex-start" else "unknown"
    quota = _result_or_reason(lambda: _quota(client, plan, zone), show)
    return dict(zip(FINDING_COLUMNS, (zone, present, model, quota, text(cost.hourly, 2), capacity), strict=True))


def _result_or_reason(request: Callable[[], str], show: Callable[[str], None]) -> str:
    """Return the response, or the reason of a failure in short: the other columns and zones are still useful."""
    try:
        return request()
    except ApiError as error:
        show(f"bezel: {error.message}")
        return f"? ({error.status} {error.reason})"
    except UserError as error:
        show(f"bezel: {error}")
        return f"? ({str(error).splitlines()[0]})"


def _network(client: GoogleClient, plan: LeasePlan, zone: str) -> tuple[str, str] | None:
    """Network and subnetwork for a probe: the stack's own if it exists; None for the project's default network.

    Raises:
        UserError: Neither exists, and a probe creates no network.
        RestError: The networks could not be read.
    """
    region = zone.rpartition("-")[0]
    subnetwork = f"projects/{plan.project}/regions/{region}/subnetworks/{plan.network.name}-{region}"
    if _exists(client, subnetwork):
        return f"projects/{plan.project}/global/networks/{plan.network.name}", subnetwork
    if _exists(client, f"projects/{plan.project}/global/networks/default"):
        return None
    consequence = f"{zone} was not probed: neither {plan.network.name}-{region} nor the network default exists."
    repair = f"probe while {plan.stack} is deployed with {zone} among its zones, or create a network named default."
    raise UserError(Problem("no network for a probe", None, consequence, repair))


def _exists(client: GoogleClient, name: str) -> bool:
    try:
        client.get(f"{endpoint('COMPUTE')}{name}")
    except ApiError as error:
        if error.status == NOT_FOUND or no_such_zone(error):
            return False
        raise
    return True


def _quota(client: GoogleClient, plan: LeasePlan, zone: str) -> str:
    quota = lease_quota(plan.terms)
    allowed = quota_of(client, plan.project, Limit(quota.service, quota.id, zone, quota.dimensions))
    return "unknown" if allowed is None else "no limit" if allowed.value == math.inf else str(allowed.value)


def _spec(plan: LeasePlan, zone: str, wait: int, network: tuple[str, str] | None) -> LeaseSpec:
    """A lease without service account or software: a probe ends before it needs them."""
    terms = plan.terms
    hardware, name = terms.hardware, f"{PROBE_STACK}-{zone}"
    shared: dict[str, Any] = {
        "labels": labels(name, PROBE_STACK, plan.labels),
        "metadata": {},
        "service_account": None,
        "provisioning_model": PROVISIONING_MODELS[terms.provisioning],
        "run_seconds": PROBE_RUN_SECONDS,
    }
    body = (
        queued_body(
            name,
            accelerator_type=hardware.id,
            runtime_version=hardware.slice.runtime_version,
            network=network[0] if network else None,
            **shared,
        )
        if hardware.slice is not None and terms.back_end == "queued_resource"
        else instance_body(
            machine_type=hardware.machine_type,
            source_image=hardware.machine_image,
            disk_type=hardware.disk_type,
            **shared,
        )
    )
    return LeaseSpec(
        project=plan.project,
        name=name,
        stack=PROBE_STACK,
        back_end=terms.back_end,
        zones=(ZoneChoice(zone, float(wait)),),
        subnetworks={zone.rpartition("-")[0]: network[1]} if network else {},
        body=body,
    )
