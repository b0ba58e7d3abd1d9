"""Limits of the policy packs for an environment, as bounds of settings, for the repairs of a plan that failed.

A plan that fails declares nothing, so the packs judge nothing of it, and its repairs could lead beyond their limits.
Reads the packs' configuration; the packs judge by their own rules (policies/hardware_cost).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

from bezel.planner import Plan, make_plan
from bezel.planner.base.money import Priced
from bezel.planner.base.problems import setting
from bezel.planner.cost.service_cost import HOURS_PER_MONTH
from bezel_base.errors import UserError
from bezel_catalog import Model

MAX_INSTANCES = setting("scaling.max_instances")
_MAX_HOURLY = setting("cost.max_hourly_usd")
_WITHOUT_TRAFFIC = "always-on"
# The setting that each policy's limit bounds.
_BOUNDED = {
    "hourly-ceiling": _MAX_HOURLY,
    "stack-hourly-ceiling": _MAX_HOURLY,
    "most-instances": MAX_INSTANCES,
    _WITHOUT_TRAFFIC: setting("scaling.min_instances"),
    "lease-ceiling": setting("cost.max_lease_usd"),
}
_CENT = Decimal("0.01")
_MONTHLY = ("monthly-ceiling", "stack-monthly-ceiling")


def limits_in(files: Iterable[Path], environment: object) -> dict[str, Any]:
    """Each policy's limit for an environment, from the packs' configurations; a file that is none is passed over."""
    limits: dict[str, Any] = {}
    for file in files:
        try:
            content = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue  # the pack itself refuses it
        for policy, values in content.items() if isinstance(content, dict) else ():
            of_each: Any = values.get("limits") if isinstance(values, dict) else None
            if isinstance(of_each, dict) and environment in of_each:
                limits[str(policy)] = of_each[environment]
    return limits


def bounds_of(limits: Mapping[str, Any], instance_hourly: Decimal | None) -> dict[str, Decimal]:
    """The most that limits allow for settings, by their full key.

    Args:
        limits: policy -> limit.
        instance_hourly: cost of one running instance in USD per hour; None where it is unknown, or for leases.
    """
    lowest: dict[str, Decimal] = {}
    numbers = {name: Decimal(str(limit)) for name, limit in limits.items() if _is_number(limit)}
    for key, most in _bounds(numbers, is_service=instance_hourly is not None):
        lowest[key] = min(most, lowest.get(key, most))
    if instance_hourly and _MAX_HOURLY in lowest:
        affordable = Decimal(int(lowest[_MAX_HOURLY] / instance_hourly))
        lowest[MAX_INSTANCES] = min(affordable, lowest.get(MAX_INSTANCES, affordable))
    return lowest


def _bounds(limits: Mapping[str, Decimal], *, is_service: bool) -> Iterator[tuple[str, Decimal]]:
    for policy, limit in limits.items():
        if policy in _BOUNDED:
            yield _BOUNDED[policy], limit if "cost." in _BOUNDED[policy] else limit.quantize(Decimal(1), ROUND_FLOOR)
        if policy in _MONTHLY and is_service:  # a lease that ends does not run all month
            yield _MAX_HOURLY, (limit / HOURS_PER_MONTH).quantize(_CENT, ROUND_FLOOR)
        if policy == _WITHOUT_TRAFFIC and not limit:
            yield setting("cost.max_idle_hourly_usd"), limit


def _is_number(limit: object) -> bool:
    return isinstance(limit, int | float) and not isinstance(limit, bool)


def instance_hourly(
    configuration: Mapping[str, object], stack: str, models: Mapping[str, Model] | None = None
) -> Decimal | None:
    """Cost of one running instance of a stack's service in USD per hour, whatever may be spent; None for a lease.

    In several regions it is that of one in each, with an address that of it too. Also None where the price is unknown,
    or the stack cannot be planned for another reason than its cost and scaling.
    """
    cost: Any = configuration.get("cost")
    own_prices = {"prices": cost["prices"]} if isinstance(cost, Mapping) and "prices" in cost else {}
    one = {**configuration, "scaling": {"max_instances": 1}, "cost": own_prices}
    try:
        plan = make_plan(one, project="any-project", stack=stack, models=models)
    except UserError:
        return None
    # The policies bound what has a GPU; a door's instances are not among the service's.
    hourly = replace(plan.total, door=None).hourly_at_max if isinstance(plan, Plan) else None
    return hourly.usd if isinstance(hourly, Priced) else None


def limits_line(limits: Mapping[str, Any], environment: object) -> str:
    """The limits as a note for the repair of a plan."""
    listed = ", ".join(f"{policy} {_words(limit)}" for policy, limit in sorted(limits.items()))
    return f"limits of {environment} that the policies compare next: {listed}"


def _words(limit: object) -> str:
    return " or ".join(map(str, limit)) if isinstance(limit, list) else str(limit)
