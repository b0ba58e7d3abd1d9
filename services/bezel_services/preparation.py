"""Preparation of a service: what takes time, at the same time, before its component is declared."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from typing import TypeVar

import pulumi

from bezel.planner import AnyPlan, PlanError, Problem
from bezel.planner.base.deployment import ImagePlan
from bezel_components.base.caller_names import in_caller_words
from bezel_services.images import FoundImages, look_up_images
from bezel_services.limits import operation_limits

T = TypeVar("T")


def prepare(plan: AnyPlan, load: Callable[[], T], *images: ImagePlan) -> tuple[T, FoundImages]:
    """Load a plan's modules and quotas, start Google's provider and look up the images; warn in a preview.

    The provider's start and a registry's answer take as long as the modules to load and the quotas to be read. The
    invokes stay in this thread: the SDK's settings belong to it.

    Args:
        plan: Plan of the service.
        load: Loads modules and reads quotas; runs in another thread.
        images: Images of the plan.
    """
    if pulumi.runtime.is_dry_run():
        for warning in plan.warnings:
            pulumi.log.warn(in_caller_words(warning))
    with ThreadPoolExecutor(1) as pool:
        loaded = pool.submit(load)
        _start_provider()
        images_with_digests = look_up_images(*images)
    return loaded.result(), images_with_digests


def refuse(plan: AnyPlan, problems: list[Problem]) -> None:
    """Stop before anything is declared if the cloud is known to have no room for it.

    Raises:
        PlanError: There are problems; it holds all of them.
    """
    if problems:
        raise PlanError.of(problems, plan.stack)


def with_limits(
    opts: pulumi.ResourceOptions | None, *transformations: pulumi.ResourceTransformation
) -> pulumi.ResourceOptions:
    """Options of a component whose children have limits of their operations, and further transformations."""
    return pulumi.ResourceOptions.merge(
        opts, pulumi.ResourceOptions(transformations=[operation_limits(), *transformations])
    )


def _start_provider() -> None:
    """Have the engine start Google's provider, which it would only do for the first resource.

    Its function `getIAMPolicy` sends no request and needs no credentials. A provider that cannot start is reported with
    the first resource.
    """
    options = pulumi.InvokeOptions(version=version("pulumi-gcp"))
    with suppress(Exception):  # the SDK raises bare exceptions for the engine's errors
        pulumi.runtime.invoke("gcp:organizations/getIAMPolicy:getIAMPolicy", {}, options)
