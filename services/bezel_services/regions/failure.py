"""Messages of a failure in one region: what becomes of the regions after it, and how to deploy without an optional one.

A deploy ends with the first resource that fails, so no region can be left out while it runs: whether Google has a GPU
for an instance is known only once Cloud Run starts one.
"""

from collections.abc import Iterator, Sequence

import pulumi

from bezel.planner.assemble.plan import RegionPlan
from bezel.planner.base.problems import setting
from bezel_components.base.caller_names import in_caller_words


def failure_texts(region: RegionPlan, service: str, after: Sequence[str]) -> Iterator[str]:
    """What a failure in a region is to say, beside its cause.

    Args:
        region: The region that fails.
        service: Name of the service.
        after: The regions after it.
    """
    failing = region.region
    if after:
        yield (
            f"{', '.join(after)} {'wait' if len(after) > 1 else 'waits'} for {failing}, which comes first: nothing of"
            f" the service {service} is changed there, so what the last deploy left there keeps serving. After"
            f" {failing} passes, the next deploy changes it there too."
        )
    if region.optional:
        yield (
            f"{failing} is optional: to deploy without it now, take it out of {setting('regions')} and"
            f" {setting('optional_regions')}; a later deploy with it tries again."
        )


def failure_hook(name: str, region: RegionPlan, service: str, after: Sequence[str]) -> pulumi.ErrorHook | None:
    """Make a hook that says so when a resource of a region fails; None where there is nothing to say.

    Args:
        name: Name of the hook: unique in a program.
        region: The region.
        service: Name of the service.
        after: The regions after it.
    """
    texts = [in_caller_words(text) for text in failure_texts(region, service, after)]

    def explain(failed: pulumi.ErrorHookArgs) -> bool:
        for text in texts if failed.failed_operation in {"create", "update"} else ():
            pulumi.log.error(text)
        return False  # no retry: the deploy has failed

    return pulumi.ErrorHook(name, explain) if texts else None
