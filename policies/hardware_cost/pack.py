"""Policies of the pack, each with its name and its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.adapter import resource_policy, stack_policy
from policies.config import CountLimits, HourLimits, NameLimits, UsdLimits
from policies.hardware_cost import rules

if TYPE_CHECKING:
    from pulumi_policy import Policy

NAME = "hardware-cost"
POLICIES: list[Policy] = [
    resource_policy(
        "hourly-ceiling",
        "A service or a lease with everything running costs no more per hour than its environment may spend.",
        UsdLimits,
        rules.hourly_ceiling,
    ),
    resource_policy(
        "monthly-ceiling",
        "The dearest month of a service or a lease costs no more than its environment may spend.",
        UsdLimits,
        rules.monthly_ceiling,
    ),
    resource_policy(
        "most-instances",
        "A service has no more instances, and a lease no more nodes, than its environment may have.",
        CountLimits,
        rules.most_instances,
    ),
    resource_policy(
        "allowed-accelerators",
        "Only accelerators that the environment may have.",
        NameLimits,
        rules.allowed_accelerators,
    ),
    resource_policy(
        "always-on",
        "No more GPUs run without traffic than the environment may have.",
        CountLimits,
        rules.always_on,
    ),
    resource_policy(
        "run-duration",
        "Each leased machine ends by itself after no more hours than its environment may have.",
        HourLimits,
        rules.run_duration,
    ),
    resource_policy(
        "lease-ceiling",
        "A lease costs no more until its end than its environment may spend.",
        UsdLimits,
        rules.lease_ceiling,
    ),
    resource_policy(
        "provisioning-models",
        "A lease is bought only as its environment may buy.",
        NameLimits,
        rules.provisioning_models,
    ),
    stack_policy(
        "stack-hourly-ceiling",
        "All accelerators of a stack together cost no more per hour than its environment may spend.",
        UsdLimits,
        rules.stack_hourly,
    ),
    stack_policy(
        "stack-monthly-ceiling",
        "All accelerators of a stack together cost no more in the dearest month than its environment may spend.",
        UsdLimits,
        rules.stack_monthly,
    ),
]
