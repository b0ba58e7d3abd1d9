"""Rows of a plan's regions and of its address: where it runs, what finds a dead region, what each part costs.

Owns these rows of both summaries. Leaves formatting to bezel.planner.render.text_table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.address.failover import EJECTION_SECONDS, FAILURES
from bezel.planner.assemble.provenance import COMPUTED
from bezel.planner.base.deployment import HEALTH_PATH
from bezel.planner.base.money import Unpriced, text
from bezel.planner.cost.address_cost import NOT_INCLUDED
from bezel.planner.cost.weights_choices import weights_choices
from bezel.planner.render.team_rows import door_cost_rows
from bezel.planner.render.text_table import line_row, usd
from bezel_catalog import accelerator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bezel.planner.assemble.plan import AddressPlan, LeasePlan, Plan
    from bezel.planner.cost.address_cost import AddressCost
    from bezel.planner.cost.weights_choices import WeightsChoice
    from bezel.planner.render.text_table import Row

NO_RETRIES = "off: a repeated POST is a generation paid twice"


def place_text(plan: Plan) -> str:
    """The regions of a service, with what is special about each."""
    invited = accelerator(plan.service.accelerator).regions_on_invitation
    notes = {
        each.region: [*(["optional"] if each.optional else []), *(["on invitation"] if each.region in invited else [])]
        for each in plan.regions
    }
    return ", ".join(f"{region} ({', '.join(about)})" if about else region for region, about in notes.items())


def records_text(address: AddressPlan) -> str:
    """The DNS records, and who sets them."""
    names = " and ".join(f"{kind} {name}" for name, kind in address.records)
    if address.zone:
        return f"{names}, in the zone {address.zone}"
    return f"{names}: to be set where the domain is served; `bezel endpoint` lists their values"


def failover_text(address: AddressPlan | None) -> str:
    """What finds a dead region, and how long it stays in use."""
    if address is None:
        return "none: each region has its own URL"
    if address.failover == "none":
        return "none: there is one region"
    seconds = address.detection_seconds
    if address.failover == "service health":
        return f"by service health: a dead region gets requests for at most {seconds} s"
    return (
        f"by outlier detection: each of Google's proxies leaves a region out within {seconds} s of {FAILURES} failed "
        f"answers in a row, for {EJECTION_SECONDS} s, longer each time"
    )


def failover_reason(address: AddressPlan | None) -> str:
    """Why this failover holds."""
    if address is None:
        return "an address would have one"
    return {
        "none": "several regions would have one",
        "service health": f"by probes of the instances that each region keeps; {FAILURES} failed answers count too",
        "outlier detection": "a region may have no instance, whose readiness could be probed",
    }[address.failover]


def region_rows(plan: Plan) -> Iterable[Row]:
    """Where the service runs."""
    origin = plan.origins
    if len(plan.regions) == 1:
        yield "region", place_text(plan), origin["regions" if plan.settings.regions else "region"]
        return
    yield "regions", place_text(plan), origin["regions"]
    if optional := [each.region for each in plan.regions if each.optional]:
        names = f"{', '.join(optional)}: left out where a quota is too small"
        yield "optional regions", names, origin["optional_regions"]
    if plan.settings.weights.regional_buckets:
        buckets = ", ".join(f"gs://{each.bucket}" for each in plan.regions)
        yield "weights of each region", buckets, origin["weights.regional_buckets"]
    if transfer := plan.transfer():
        for choice in weights_choices([each.region for each in plan.regions], transfer.gib):
            yield f"weights, {choice.name}", *_choice_row(choice)
    yield "failover", failover_text(plan.address), failover_reason(plan.address)
    if probe := plan.service.readiness_probe:
        failures = f"not ready after {probe.failure_threshold} failures"
        yield "readiness probe", f"GET {HEALTH_PATH} every {probe.period_seconds} s, {failures}", COMPUTED


def address_rows(plan: Plan | LeasePlan) -> Iterable[Row]:
    """The address, if there is one."""
    if plan.address is None:
        return
    address, origin = plan.address, plan.origins
    yield "address", f"{address.url}, the audience of tokens too", origin["address.domain"]
    for name, kind in address.records:
        place = f"in the zone {address.zone}" if address.zone else "to be set where the domain is served"
        yield f"record {kind}", f"{name} {place}", origin["address.zone"] if address.zone else COMPUTED
    yield "retries of the balancer", NO_RETRIES, COMPUTED
    of_domain, of_group = "of the domain: certificate, proof and records", "of a service or region: its endpoint group"
    yield "replaced by a change", f"{of_domain}; {of_group}; never the IP address", "the successor is made first"


def region_cost_rows(plan: Plan) -> Iterable[Row]:
    """What the other regions and the address cost, and the sums; nothing for one service alone."""
    total = plan.total
    if total.is_one_service:
        return
    for each in plan.regions[1:]:
        for line in each.cost.lines:
            name, amount, note = line_row(line)
            yield f"{name}, {each.region}", amount, note
        yield f"one instance running, {each.region}", usd(each.cost.hourly, "h", 4), COMPUTED
        yield f"without traffic, {each.region}", usd(each.cost.monthly_without_traffic, "month", 2), COMPUTED
        yield f"at most, {each.region}", usd(each.cost.hourly_at_max, "h", 4), COMPUTED
    if total.address:
        yield from address_cost_rows(total.address)
    yield from door_cost_rows(total.door)
    yield "all without traffic", usd(total.monthly_without_traffic, "month", 2), total.parts
    yield "all at most", usd(total.hourly_at_max, "h", 4), total.parts


def address_cost_rows(cost: AddressCost) -> Iterator[Row]:
    """What an address costs."""
    _, amount, note = line_row(cost.rule)
    more = usd(cost.further_rule.hourly, "h", 2)
    yield "forwarding rule", amount, f"price of a project's first five together, a further one {more}; {note}"
    for region, lines in cost.data.items():
        for line in lines:
            _, _, note = line_row(line)
            yield f"a GiB of {line.item}, {region}", f"{text(line.hourly, 4)} USD", note
    yield "not included there", None, ", ".join(NOT_INCLUDED)


def short_price_rows(plan: Plan) -> Iterator[tuple[str, object]]:
    """The price of each region and of the address, and the sums."""
    total = plan.total
    for each in plan.regions:
        hourly, monthly = usd(each.cost.hourly, "h", 4), usd(each.cost.monthly_always_on, "month", 2)
        yield f"price in {each.region}", f"{hourly} an instance, {monthly} always on"
    if total.address:
        yield "price of the address", address_price(total.address)
    yield "without traffic", f"{usd(total.monthly_without_traffic, 'month', 2)} in all"
    yield "at most", f"{usd(total.hourly_at_max, 'h', 4)} in all"


def address_price(cost: AddressCost) -> str:
    """The price of an address in one line."""
    gib = {region: text(cost.gib(region), 4) for region in cost.data}
    data = ", ".join(f"{amount} in {region}" for region, amount in gib.items())
    one = next(iter(gib.values()))
    each = f"{one} USD" if set(gib.values()) == {one} else f"{data} USD"
    return f"{usd(cost.hourly, 'h', 4)}, {usd(cost.monthly, 'month', 2)}; {each} for a GiB in and a GiB out"


def _choice_row(choice: WeightsChoice) -> tuple[str, str]:
    """What a way to have the weights costs, and why a part of it is not known."""
    unknown = [part.reason for part in (choice.monthly, choice.start) if isinstance(part, Unpriced)]
    start = "unknown" if isinstance(choice.start, Unpriced) else f"{text(choice.start, 2)} USD"
    return f"{usd(choice.monthly, 'month', 2)}, dearest start {start}", "; ".join(unknown) or COMPUTED
