"""Dispatch of a plan to its kind of stack. Each kind is imported when needed: no preview pays for the others."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import Any

import pulumi

from bezel.planner import AnyPlan, LeasePlan
from bezel_stacks.images import FoundImages, look_up_images
from bezel_stacks.limits import limit_operations


def deploy(plan: AnyPlan) -> dict[str, Any]:
    """Declare the resources of a plan; return the stack's outputs.

    Raises:
        PlanError: The cloud has no room for the stack, or a registry none of its images: nothing is declared.
    """
    limit_operations()
    is_preview = pulumi.runtime.is_dry_run()
    if is_preview:
        for warning in plan.warnings:
            pulumi.log.warn(warning)
    # The provider's start and a registry's answer take as long as the modules to load and the quotas to be read. The
    # invokes stay here: the SDK's settings belong to this thread.
    with ThreadPoolExecutor(1) as pool:
        prepared = pool.submit(_prepare, plan, is_preview=is_preview)
        _start_provider()
        images = look_up_images(
            *((plan.node.image, plan.gateway.image) if isinstance(plan, LeasePlan) else (plan.service.image,))
        )
    return prepared.result()(images)


def _start_provider() -> None:
    """Have the engine start Google's provider, which it would only do for the first resource.

    Its function `getIAMPolicy` sends no request and needs no credentials. A provider that cannot start is reported with
    the first resource.
    """
    options = pulumi.InvokeOptions(version=version("pulumi-gcp"))
    with suppress(Exception):  # the SDK raises bare exceptions for the engine's errors
        pulumi.runtime.invoke("gcp:organizations/getIAMPolicy:getIAMPolicy", {}, options)


def _prepare(plan: AnyPlan, *, is_preview: bool) -> Callable[[FoundImages], dict[str, Any]]:
    """Load the modules of the plan's kind and read its quotas; return the function that declares its resources."""
    if isinstance(plan, LeasePlan):
        from bezel_stacks import lease

        return partial(lease.deploy, plan, lease.read_quotas(plan, is_preview=is_preview))
    from bezel_stacks import cloud_run

    return partial(cloud_run.deploy, plan, cloud_run.read_quotas(plan, is_preview=is_preview))
