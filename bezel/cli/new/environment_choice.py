"""Environment of a converted stack: the first of the shipped ones whose limits allow what serves today. Pure.

The packs judge by their own rules; here are the limits that bound a setting, so that a stack which they would refuse
is named when its project is made. Leaves out labels, and what a lease may request.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bezel.cli.new.choice import ALLOWED, DEV, PROD
from bezel.conversion.conversion import Conversion
from bezel.engine.changes.limits import bounds_of
from bezel.planner import LeasePlan
from bezel.planner.base.money import Priced
from bezel.planner.base.problems import setting
from bezel_base.errors import Problem

LIMITS = "policies/hardware_cost.{}.json"
"""File of an environment's limits in a new project."""


@dataclass(frozen=True, slots=True)
class EnvironmentChoice:
    """An environment.

    Attributes:
        name: `dev` or `prod`.
        refusals: What its limits refuse of the stack.
    """

    name: str
    refusals: tuple[Problem, ...]


def choose_environment(conversion: Conversion, limits: Mapping[str, Mapping[str, Any]]) -> EnvironmentChoice:
    """The environment that a label of the input names, else the first whose limits refuse nothing, else `prod`.

    Args:
        conversion: The stack.
        limits: Environment -> configuration of the pack of costs.
    """
    named = conversion.converted.settings.get("environment")
    names = [str(named)] if named in limits else [DEV, PROD]
    choices = [EnvironmentChoice(name, tuple(_refusals(conversion, name, limits[name]))) for name in names]
    return next((each for each in choices if not each.refusals), choices[-1])


def _refusals(conversion: Conversion, environment: str, content: Mapping[str, Any]) -> Iterator[Problem]:
    limits = {policy: values["limits"][environment] for policy, values in content.items()}
    file = LIMITS.format(environment)
    settings = conversion.converted.settings
    accelerator, allowed = settings["accelerator"], limits.get(ALLOWED)
    if allowed is not None and accelerator not in allowed:
        consequence = f"the limits of {environment} allow {', '.join(allowed)} alone."
        yield Problem(setting("accelerator"), accelerator, consequence, f"add it to {ALLOWED} in {file}.")
    hourly = None if isinstance(conversion.plan, LeasePlan) else conversion.prices.after.hourly
    bounds = bounds_of(limits, hourly.usd if isinstance(hourly, Priced) else None)
    for key, value in _bounded_values(conversion):
        if key in bounds and value > bounds[key]:
            consequence = f"the limits of {environment} allow {bounds[key]} at most."
            yield Problem(key, f"{value.normalize():f}", consequence, f"raise the limits in {file}, or lower it.")


def _bounded_values(conversion: Conversion) -> Iterator[tuple[str, Decimal]]:
    """What limits bound: settings of the stack, and what its plan costs."""
    scaling = conversion.converted.settings.get("scaling", {})
    yield setting("scaling.min_instances"), Decimal(scaling.get("min_instances", 0))
    yield setting("scaling.max_instances"), Decimal(scaling.get("max_instances", 1))
    at_max = conversion.prices.after.hourly_at_max
    if isinstance(at_max, Priced):
        yield setting("cost.max_hourly_usd"), at_max.usd
    if isinstance(conversion.plan, LeasePlan) and isinstance(whole := conversion.plan.cost.lease_at_max, Priced):
        yield setting("cost.max_lease_usd"), whole.usd
