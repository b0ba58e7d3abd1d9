"""Rules of the pack: what a resource requests against its environment's limits. Pure.

Costs come from the planner's rules over the resource's own inputs. A month is the most expensive one that these allow:
all instances running for 730 hours, and a lease that ends by itself until its end. The first line of a rule's
docstring is the description that the engine shows.
"""

from collections.abc import Callable, Iterable, Iterator
from decimal import ROUND_CEILING, Decimal
from functools import wraps
from typing import Any

from bezel.planner.base.money import Amount, Unpriced, times, total
from bezel.planner.base.repairs import to_number
from bezel.planner.cost.service_cost import HOURS_PER_MONTH
from bezel.planner.rules.lease_checks import RUN_SECONDS
from bezel.resource_cost.hardware import SERVICE, Foreign, Hardware, Unreadable, hardware_of
from bezel.resource_cost.inputs import InputError, Inputs, plainly
from bezel.resource_cost.prices.gpu_service import GpuService
from bezel.resource_cost.prices.leases import MODELS, Lease
from bezel.resource_cost.prices.load_balancing import (
    DATA,
    LoadBalancers,
    endpoint_regions,
    is_part,
    load_balancers,
)
from bezel.resource_cost.prices.scheduled_minimum import BeyondDeclaration, ScheduledMinimum
from bezel.resource_cost.stack_cost import PaidLeases, cost_in_stack, monthly_of
from bezel_base.errors import NOT_SET, Problem
from bezel_policies.config import Limits, StackLimits

_BALANCER_REPAIR = (
    "have the owner of the limits add the GiB that are expected in a month, in and out together, to this policy, e.g. "
    '`"traffic_gib": 100`.'
)
_BALANCER_ROW = (
    "choose hardware and regions with a price in the catalogue, or have the owner of the limits exempt the type of a "
    'rule without one: `"exempt": ["gcp:compute/forwardingRule:ForwardingRule"]`.'
)
Rule = Callable[[str, Inputs, Limits], Iterator[Problem]]
_MISSING_ROW = (
    "choose hardware with a price in the catalogue, or add the row to "
    "packages/catalog/bezel_catalog/data/prices.csv with its source; "
    "`unit` is the unit of usd_per_unit: gpu-second, vcpu-second, gib-second, chip-hour or machine-hour."
)
_ENDING = "use a queued resource with runDuration, or an instance with scheduling.maxRunDuration."


def _rule_over(
    *kinds: type[Hardware] | type[ScheduledMinimum],
) -> Callable[[Callable[[Any, str, Any], Iterator[Problem]]], Rule]:
    """Make a rule over resources from one over hardware of these kinds, its environment and the limit there."""

    def decorate(rule: Callable[[Any, str, Any], Iterator[Problem]]) -> Rule:
        @wraps(rule)
        def check(token: str, inputs: Inputs, config: Limits) -> Iterator[Problem]:
            hardware = _checked_hardware(token, inputs, config)
            if isinstance(hardware, kinds):
                yield from rule(hardware, *config.of(hardware.labels))

        return check

    return decorate


@_rule_over(GpuService, Lease, Foreign)
def hourly_ceiling(hardware: Hardware, environment: str, limit: float) -> Iterator[Problem]:
    """With everything running, a service or lease costs no more per hour than its environment may spend."""
    yield from _over(hardware.hourly, limit, environment, "an hour", hardware)


@_rule_over(GpuService, Lease, Foreign)
def monthly_ceiling(hardware: Hardware, environment: str, limit: float) -> Iterator[Problem]:
    """The most expensive month of a service or lease costs no more than its environment may spend."""
    yield from _over(monthly_of(hardware), limit, environment, "a month", hardware)


@_rule_over(GpuService, Lease)  # the number of a foreign accelerator is unknown: the cost limits refuse it
def most_instances(hardware: GpuService | Lease, environment: str, limit: int) -> Iterator[Problem]:
    """A service has no more instances, and a lease no more nodes, than its environment may have."""
    if hardware.max_instances > limit:
        lower = to_number("lower", "scaling.max_instances", limit)
        repair = f"{lower}." if limit else "choose another environment."
        consequence = f"{environment} may have at most {limit} at a time."
        yield Problem(hardware.max_key, hardware.max_instances, consequence, repair)


@_rule_over(GpuService, ScheduledMinimum)  # a TPU is limited by its run duration
def always_on(hardware: GpuService | ScheduledMinimum, environment: str, limit: int) -> Iterator[Problem]:
    """No more GPUs run without traffic than the environment may have."""
    if hardware.min_instances > limit:
        may = f"at most {limit} may run" if limit else "none may run"
        consequence = f"in {environment} {may} without traffic: each costs money day and night."
        name = "scaling.schedule" if isinstance(hardware, ScheduledMinimum) else "scaling.min_instances"
        repair = f"{to_number('lower', name, limit)}."
        yield Problem(hardware.min_key, hardware.min_instances, consequence, repair)


@_rule_over(GpuService, Lease, Foreign)
def allowed_accelerators(hardware: Hardware, environment: str, allowed: list[str]) -> Iterator[Problem]:
    """An environment has only accelerators that it may have."""
    consequence = f"{environment} may have {', '.join(allowed) or 'no accelerator'}"
    if isinstance(hardware, Unreadable):
        consequence = f"it may create anything, as {hardware.why} is not understood, and {consequence} only."
        yield Problem(hardware.accelerator_key, plainly(hardware.accelerator), consequence, _exempting(hardware.token))
    elif isinstance(hardware, Foreign):
        consequence += f", on types that this policy knows; {hardware.token} is another type."
        yield Problem(hardware.accelerator_key, plainly(hardware.accelerator), consequence, _exempting(hardware.token))
    elif hardware.accelerator not in allowed:
        repair = "choose one of these, or deploy to an environment that may have it."
        yield Problem(hardware.accelerator_key, plainly(hardware.accelerator), f"{consequence} only.", repair)


def lease_ceiling(token: str, inputs: Inputs, config: Limits) -> Iterator[Problem]:
    """A lease costs no more until its end than its environment may spend."""
    hardware = _checked_hardware(token, inputs, config)
    if isinstance(hardware, Lease) and hardware.run_seconds is not None:  # without an end: run_duration refuses it
        environment, limit = config.of(hardware.labels)
        yield from _over(hardware.until_its_end(), limit, environment, "a lease", hardware)


@_rule_over(Lease)
def provisioning_models(hardware: Lease, environment: str, allowed: list[str]) -> Iterator[Problem]:
    """A lease has a provisioning model that its environment may have."""
    model = MODELS.get(hardware.model, hardware.model)
    if model not in allowed:
        consequence = f"{environment} may lease {', '.join(allowed) or 'nothing'} only, and this is {plainly(model)}."
        repair = "set `bezel:lease.provisioning` to one of these, or deploy to an environment that may have it."
        yield Problem(hardware.model_key, plainly(hardware.model or model), consequence, repair)


def run_duration(token: str, inputs: Inputs, config: Limits) -> Iterator[Problem]:
    """Each leased machine ends by itself after no more hours than its environment may have."""
    hardware = _checked_hardware(token, inputs, config)
    if isinstance(hardware, Foreign) and hardware.may_be_tpu:
        consequence = f"a resource of type {token} has no maximum run duration that this policy knows."
        repair = f"{_ENDING} {_exempting(token)}"
        raise inputs.refusal(hardware.accelerator, consequence, repair, hardware.accelerator_key)
    if not isinstance(hardware, Lease):
        return
    environment, limit = config.of(hardware.labels)
    seconds = hardware.run_seconds
    if seconds is None or seconds > Decimal(str(limit)) * 3600:
        consequence = f"a lease of {environment} must end by itself after at most {limit:g} h."
        longest = int(limit * 3600)
        repair = f"{_shorter(longest)}."
        if seconds is None:
            repair = f"set a maximum run duration of at most {longest} s; on a type of resource without one, {_ENDING}"
        yield Problem(
            hardware.run_key,
            NOT_SET if seconds is None else f"{seconds} s",
            consequence + (" This one would never end." if seconds is None else ""),
            repair,
        )


def stack_hourly_ceiling(resources: Iterable[tuple[str, Inputs]], config: StackLimits) -> Iterator[Problem]:
    """All accelerators and load balancers of a stack cost no more per hour than its environment may spend."""
    yield from _sums(resources, config, "an hour", lambda hardware: hardware.hourly)


def stack_monthly_ceiling(resources: Iterable[tuple[str, Inputs]], config: StackLimits) -> Iterator[Problem]:
    """All accelerators and load balancers of a stack cost no more in the most expensive month than it may spend."""
    yield from _sums(resources, config, "a month", monthly_of)


def _checked_hardware(token: str, inputs: Inputs, config: Limits) -> Hardware | ScheduledMinimum | None:
    """The accelerators of a resource; None where it requests none, or its type is exempt from this policy."""
    hardware = hardware_of(token, inputs)
    return None if isinstance(hardware, Foreign) and token in config.exempt else hardware


def _exempting(token: str) -> str:
    return (
        "remove it, or choose a type and an accelerator with a price in the catalogue. The owner of the limits can "
        f'exempt the type: `"exempt": ["{token}"]` beside the `limits` of this policy.'
    )


def _over(amount: Amount, limit: float, environment: str, per: str, hardware: Hardware) -> Iterator[Problem]:
    if isinstance(amount, Unpriced):
        consequence = (
            f"it has no price, so it cannot be compared with the {limit:g} USD {per} of {environment}. "
            f"Missing: {amount.reason}."
        )
        repair = _exempting(hardware.token) if isinstance(hardware, Foreign) else _MISSING_ROW
        yield Problem(hardware.accelerator_key, plainly(hardware.accelerator), consequence, repair)
    elif amount.usd > Decimal(str(limit)):
        key, value, repair = _cheaper(hardware, Decimal(str(limit)) / amount.usd, per)
        cost = f"at most {_usd(amount.usd)} USD {per} with everything running"
        repair += "choose a cheaper accelerator, or have the owner of the limits raise the limit."
        yield Problem(key, plainly(value), f"{cost}; {environment} may spend {limit:g}.", repair)


def _cheaper(hardware: Hardware, share: Decimal, per: str) -> tuple[str, str, str]:
    """The input that decides a cost, its value, and the begin of the repair that lowers it to a share of it."""
    if isinstance(hardware, GpuService):
        fewer = int(share * hardware.max_instances)
        repair = f"{to_number('lower', 'scaling.max_instances', fewer)}, " if fewer else ""
        return hardware.max_key, str(hardware.max_instances), repair
    if isinstance(hardware, Lease) and hardware.run_seconds and hardware.monthly_hours is None and per != "an hour":
        seconds = int(share * hardware.run_seconds)
        if seconds >= RUN_SECONDS[0]:
            return hardware.run_key, f"{hardware.run_seconds} s", f"{_shorter(seconds)}, "
    return hardware.accelerator_key, hardware.accelerator, ""


def _shorter(seconds: int) -> str:
    """The repair that lets a lease end within so many seconds."""
    return f"{to_number('lower', 'lease.duration', seconds)}s"


def _sums(
    resources: Iterable[tuple[str, Inputs]],
    config: StackLimits,
    per: str,
    amount_of: Callable[[Hardware | BeyondDeclaration], Amount],
) -> Iterator[Problem]:
    """Compare each environment's sum with its limit; in a stack of one environment, the stack's sum."""
    amounts: dict[tuple[str, float], list[Amount]] = {}
    balancers: dict[tuple[str, float], list[tuple[str, Inputs]]] = {}
    paid = PaidLeases()
    pairs = list(resources)
    services = [inputs for token, inputs in pairs if token == SERVICE]
    for token, inputs in pairs:
        try:
            if is_part(token) and token not in config.exempt:
                balancers.setdefault(config.of(inputs.at("labels")), []).append((token, inputs))
            cost = cost_in_stack(token, inputs, services)
            exempt = isinstance(cost, Foreign) and token in config.exempt
            if cost is None or exempt or (not isinstance(cost, BeyondDeclaration) and paid.already(cost)):
                continue
            amounts.setdefault(config.of(cost.labels), []).append(amount_of(cost))
        except InputError as error:
            yield from error.problems
    for key in dict.fromkeys([*amounts, *balancers]):
        try:
            together = load_balancers(balancers.get(key, []), endpoint_regions(pairs))
        except InputError as error:
            yield from error.problems
            continue
        parts = [*amounts.get(key, []), *(_amounts_of(together, config, per) if together else ())]
        yield from _over_sum(*key, parts, together, per, len(amounts.get(key, [])))


def _amounts_of(balancers: LoadBalancers, config: StackLimits, per: str) -> list[Amount]:
    """What load balancers cost without traffic, and for the data that the configuration states."""
    gib = None if config.traffic_gib is None else Decimal(str(config.traffic_gib))
    data = balancers.data_monthly(gib)
    if per == "an hour":
        return [balancers.hourly, times(data, Decimal(1) / HOURS_PER_MONTH)]
    return [balancers.monthly, data]


def _over_sum(
    environment: str, limit: float, parts: list[Amount], balancers: LoadBalancers | None, per: str, accelerators: int
) -> Iterator[Problem]:
    count = f"{accelerators} resource{'s' * (accelerators != 1)} with accelerators"
    if balancers:
        count += f" and {balancers.count} of load balancers"
    together = total(parts)
    if isinstance(together, Unpriced):
        repair = "choose hardware with a price in the catalogue."
        if balancers:
            repair = _BALANCER_REPAIR if DATA in together.reasons else _BALANCER_ROW
        consequence = f"their sum has no price. Missing: {together.reason}."
        yield Problem("stack", count, consequence, repair)
    elif together.usd > Decimal(str(limit)):
        consequence = f"at most {_usd(together.usd)} USD {per} with everything running; "
        consequence += f"a stack of {environment} may spend {limit:g}."
        repair = "run fewer of them, or have the owner of the limits raise the limit."
        yield Problem("stack", count, consequence, repair)


def _usd(amount: Decimal) -> str:
    """The amount as text, rounded up, so that it is above the limit wherever the amount is."""
    return str(amount.quantize(Decimal("0.0001"), ROUND_CEILING))
