"""Dispatch of a plan to its kind of service. Each kind is imported when needed: no preview pays for the others."""

from typing import TYPE_CHECKING, Any

import pulumi

from bezel.planner import AnyPlan, LeasePlan
from bezel_stacks import config
from bezel_stacks.earlier_names import with_earlier_name

if TYPE_CHECKING:
    from bezel_services.leased_vllm_service import PlannedLeasedVllmService
    from bezel_services.vllm_service import PlannedVllmService

NAME = "vllm"
"""Name of the stack's one component."""


def deploy(plan: AnyPlan) -> dict[str, Any]:
    """Declare the resources of a plan; return the stack's outputs.

    Returns:
        The stack's outputs: url, revision or leases, settings, image, model, arguments, plan, smoke, simulated; with
        several regions or an address the `regions` in their order, their `urls` and the `address`; with a door of keys
        its URL, `door`.

    Raises:
        PlanError: The cloud has no room for the stack, or a registry none of its images: nothing is declared.
    """
    opts = pulumi.ResourceOptions(transformations=[with_earlier_name])
    if isinstance(plan, LeasePlan):
        from bezel_services.leased_vllm_service import PlannedLeasedVllmService

        leased = PlannedLeasedVllmService(NAME, plan, opts)
        return {"url": leased.url, "leases": leased.leases, **_shared_outputs(leased)}
    from bezel_services.vllm_service import PlannedVllmService

    service = PlannedVllmService(NAME, plan, opts)
    return {"url": service.url, "revision": service.revision, **_shared_outputs(service)}


def _shared_outputs(service: "PlannedVllmService | PlannedLeasedVllmService") -> dict[str, Any]:
    return {
        # As they were deployed: a later preview shows what a stack file changes in its own words.
        "settings": config.settings(),
        "image": service.image,
        "model": service.model,
        "arguments": service.arguments,
        "plan": service.plan,
        "smoke": {"verdict": service.verdict, "figures": service.figures},
        "simulated": service.simulated,
        **service.placement,
    }
