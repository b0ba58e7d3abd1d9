"""Availability and cost of leased hardware in each zone, by three independent checks.

That the hardware exists in a zone, that the zone takes the provisioning model, and that it has capacity at the moment
do not imply each other. Leaves requests to `bezel.leases.availability`, and printing.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bezel.leases.availability import PROBE_STACK, probe
from bezel.leases.backends.interface import NOT_FOUND, no_such_zone
from bezel.leases.clock import PlatformClock
from bezel.leases.inventory import back_end_of, new_client
from bezel.leases.names import labels
from bezel.leases.requests import PROVISIONING_MODELS, LeaseSpec, ZoneChoice, instance_body, queued_body
from bezel.planner import LeasePlan
from bezel.planner.base.hardware import BackEnd, LeasedHardware
from bezel.planner.base.money import UNKNOWN, lasting, text
from bezel.planner.base.settings import PriceRow
from bezel.planner.cost.lease_cost import Provisioning, lease_cost
from bezel.rest import ApiError, GoogleClient, endpoint
from bezel.rest.cloud_quotas import Limit, quota_of
from bezel_base.errors import Problem, UserError

Show = Callable[[str], None]
PROBE_RUN_SECONDS = 600
"""The platform's shortest run duration, which limits the cost of a probe."""
NOT_JUDGED = "not judged"
FINDING_COLUMNS = ("zone", "hardware", "provisioning model", "quota", "USD per hour", "capacity now")


@dataclass(frozen=True)
class Search:
    """What is looked for, and for which project.

    Attributes:
        hardware: The hardware.
        back_end: Control plane that would request it.
        provisioning: How it would be bought.
        project: The Google Cloud project; None: only what the catalogue knows.
        own_prices: Price rows of a stack file.
    """

    hardware: LeasedHardware
    back_end: BackEnd
    provisioning: Provisioning
    project: str | None
    own_prices: Sequence[PriceRow] = ()


Probe = Callable[[GoogleClient, str, Show], str]
"""Requests real capacity in a zone, and returns the result."""


def find(
    plan: LeasePlan, zones: Sequence[str], clock: PlatformClock, *, probe_seconds: int | None, show: Show
) -> list[dict[str, str]]:
    """Return one row for each zone, with the columns of FINDING_COLUMNS.

    Args:
        plan: Plan of the stack whose hardware is looked for.
        zones: Zones to look in.
        clock: The platform's clock.
        probe_seconds: Time to wait for capacity in each zone; None to request none.
        show: Takes each line about progress or about a request that failed; a repeated line once.
    """

    def probe_zone(client: GoogleClient, zone: str, show_line: Show) -> str:
        wait = probe_seconds or 0
        spec = _spec(plan, zone, wait, _network(client, plan, zone))
        return probe(back_end_of(plan.terms.back_end, client, plan.project), spec, clock, wait, show_line).result

    return find_hardware(search_of(plan), zones, clock, show, None if probe_seconds is None else probe_zone)


def search_of(plan: LeasePlan) -> Search:
    """The search for a stack's hardware."""
    terms = plan.terms
    return Search(terms.hardware, terms.back_end, terms.provisioning, plan.project, plan.settings.cost.prices)


def find_hardware(
    search: Search, zones: Sequence[str], clock: PlatformClock, show: Show, probe_zone: Probe | None = None
) -> list[dict[str, str]]:
    """Return one row for each zone, with the columns of FINDING_COLUMNS; arguments as of `find`."""
    show_once = once(show)
    with new_client(clock) as client:
        return [_row(client, search, zone, show_once, probe_zone) for zone in zones]


def once(show: Show) -> Show:
    """Shows a repeated line once."""
    shown: set[str] = set()

    def show_once(line: str) -> None:
        if line not in shown:
            shown.add(line)
            show(line)

    return show_once


def _row(client: GoogleClient, search: Search, zone: str, show: Show, probe_zone: Probe | None) -> dict[str, str]:
    hardware, project = search.hardware, search.project
    kind = hardware.id if search.back_end == "queued_resource" else hardware.machine_type
    present = quota = NOT_JUDGED
    if project is not None:
        back_end = back_end_of(search.back_end, client, project)
        present = result_or_reason(lambda: "yes" if back_end.has_hardware(zone, kind) else "no", show)
    cost = lease_cost(hardware, zone=zone, provisioning=search.provisioning, own_prices=search.own_prices)
    capacity = "not probed (--probe)" if probe_zone is None else "-"
    if probe_zone is not None and present == "yes":
        limit = text(lasting(cost.hourly, PROBE_RUN_SECONDS), 2)
        show(f"{zone}: requests one real {hardware.id} that ends by itself after 10 min; USD at most: {limit}")
        capacity = result_or_reason(lambda: probe_zone(client, zone, show), show)
    taken = "accepted" if zone in hardware.zones else "refused" if zone in hardware.zones_refused else "unknown"
    model = taken if search.provisioning == "flex-start" else "unknown"
    if project is not None:
        quota = result_or_reason(lambda: _quota(client, search, project, zone), show)
    return dict(zip(FINDING_COLUMNS, (zone, present, model, quota, text(cost.hourly, 2), capacity), strict=True))


def result_or_reason(request: Callable[[], str], show: Show) -> str:
    """Return the response, or the reason of a failure in short: the other columns and zones are still useful."""
    try:
        return request()
    except ApiError as error:
        show(f"bezel: {error.because}")
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


def _quota(client: GoogleClient, search: Search, project: str, zone: str) -> str:
    standard, preemptible = search.hardware.quotas[search.back_end]
    quota = standard if search.provisioning == "on-demand" else preemptible
    return limit_text(client, project, Limit(quota.service, quota.id, zone, quota.dimensions))


def limit_text(client: GoogleClient, project: str, limit: Limit) -> str:
    """The value of a quota."""
    allowed = quota_of(client, project, limit)
    return UNKNOWN if allowed is None else "no limit" if allowed.value == math.inf else f"{allowed.value:g}"


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
