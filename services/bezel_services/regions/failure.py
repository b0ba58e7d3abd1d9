"""Messages of a failure in a region or at the address: what it means for the others, and how a deploy continues.

A deploy ends with the first resource that fails, so no region can be left out while it runs: whether Google has a GPU
for an instance is known only once Cloud Run starts one.
"""

from collections.abc import Iterable, Iterator, Sequence

import pulumi

from bezel.planner.assemble.plan import AddressPlan, RegionPlan
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
    return pulumi.ErrorHook(name, lambda failed: _say(failed, texts)) if texts else None


def address_failure_text(address: AddressPlan, project: str, errors: Sequence[str]) -> str:
    """What a failing part of an address is to say, beside Google's own words.

    Args:
        address: The address.
        project: Id of the project.
        errors: The provider's errors.
    """
    denied = any("Error 403" in error or "PERMISSION_DENIED" in error for error in errors)
    role = "load balancers, certificates" + (f" and the records of the zone {address.zone}" if address.zone else "")
    repair = (
        f"let a person with rights over {project} grant this identity those over {role} (for a pipeline: `bezel init"
        f" --domain {address.domain}`)"
        if denied
        else "correct what the error names"
    )
    return (
        f"{address.url} is not complete, so callers may not reach the services there; these are deployed and answer at"
        f" their own URLs (the output `urls`). Repair: {repair}, then run the same command again, which makes the rest."
    )


def address_failure_hook(name: str, address: AddressPlan, project: str) -> pulumi.ErrorHook:
    """Make a hook that says what a failing part of an address means for callers.

    Args:
        name: Name of the hook: unique in a program.
        address: The address.
        project: Id of the project.
    """
    texts: list[str] = []

    def explain(failed: pulumi.ErrorHookArgs) -> bool:
        text = in_caller_words(address_failure_text(address, project, failed.errors))
        new = [] if text in texts else [text]  # many parts may fail alike
        texts.extend(new)
        return _say(failed, new)

    return pulumi.ErrorHook(name, explain)


def _say(failed: pulumi.ErrorHookArgs, texts: Iterable[str]) -> bool:
    """Log the texts where a resource could not be made or changed; ask for no retry, as the deploy has failed."""
    for text in texts if failed.failed_operation in {"create", "update"} else ():
        pulumi.log.error(text)
    return False
