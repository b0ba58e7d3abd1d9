"""Policies of the pack, each with its configuration."""

from pulumi_policy import Policy

from bezel_policies.adapter import resource_policy, stack_policy
from bezel_policies.config import CountLimits, HourLimits, NameLimits, StackUsdLimits, UsdLimits
from bezel_policies.hardware_cost import rules

NAME = "hardware-cost"
POLICIES: list[Policy] = [
    resource_policy(UsdLimits, rules.hourly_ceiling),
    resource_policy(UsdLimits, rules.monthly_ceiling),
    resource_policy(CountLimits, rules.most_instances),
    resource_policy(NameLimits, rules.allowed_accelerators),
    resource_policy(CountLimits, rules.always_on),
    resource_policy(HourLimits, rules.run_duration),
    resource_policy(UsdLimits, rules.lease_ceiling),
    resource_policy(NameLimits, rules.provisioning_models),
    stack_policy(StackUsdLimits, rules.stack_hourly_ceiling),
    stack_policy(StackUsdLimits, rules.stack_monthly_ceiling),
]
