"""Message of a failure in one region about the regions after it, which the deploy has not come to."""

from collections.abc import Sequence

import pulumi

from bezel.planner.base.deployment import ServicePlan


def waiting_text(region: str, service: str, after: Sequence[str]) -> str:
    """What becomes of the regions that wait for one that failed."""
    several = len(after) > 1
    return (
        f"{', '.join(after)} {'wait' if several else 'waits'} for {region}, which comes first: nothing of the service "
        f"{service} is changed there, so what the last deploy left there keeps serving. After {region} passes, the "
        f"next deploy changes it there too."
    )


def waiting_hook(name: str, failing: ServicePlan, after: Sequence[str]) -> pulumi.ErrorHook:
    """Make a hook that says so when a resource of a region fails.

    Args:
        name: Name of the hook: unique in a program.
        failing: The service of the region.
        after: The regions after it.
    """

    def explain(failed: pulumi.ErrorHookArgs) -> bool:
        if failed.failed_operation in {"create", "update"}:
            pulumi.log.error(waiting_text(failing.region, failing.name, after))
        return False  # no retry: the deploy has failed

    return pulumi.ErrorHook(name, explain)
