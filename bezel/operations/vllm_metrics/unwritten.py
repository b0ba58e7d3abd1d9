"""Revisions whose instances ran without writing series: what they served is in no figure that is made of series.

A revision of before a stack kept its figures has no collector, and one whose account may not write them is the same.
Compared with the time that Cloud Monitoring says each revision was billed for. Leaves leased machines out, of which the
platform keeps no time.
"""

from collections.abc import Collection

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.service_use.service_metrics import billed_by_revision, reason
from bezel.operations.vllm_metrics.time_range import TimeRange
from bezel.rest import RestError

REVISION = "revision_name"
"""Label of the series of an instance on Cloud Run."""
_LEAST_SECONDS = 1.0  # a remainder that no request was served in
_MOST_NAMED = 3


def unwritten_notes(
    context: Context, deployment: Deployment, when: TimeRange, written: Collection[str]
) -> tuple[str, ...]:
    """What ran without writing series, for people; () where nothing did.

    Args:
        context: The context of the operation.
        deployment: The deployed stack.
        when: The time.
        written: The revisions that wrote series in the time, or in the window before it: the billed time begins up to
            a minute earlier.
    """
    services = [each for each in deployment.services if each.has_gpu and deployment.region in ("", each.location)]
    seconds: dict[str, float] = {}
    try:
        for service in services:
            for revision, billed in billed_by_revision(context, service, when.start).items():
                if revision and revision not in written:
                    seconds[revision] = seconds.get(revision, 0.0) + billed
    except RestError as error:
        return (f"whether other revisions ran without writing figures is unknown ({reason(error)})",)
    unwritten = sorted(revision for revision, billed in seconds.items() if billed >= _LEAST_SECONDS)
    if not unwritten:
        return ()
    hours = sum(seconds[revision] for revision in unwritten) / 3600
    named = ", ".join(unwritten[:_MOST_NAMED]) + f" and {len(unwritten) - _MOST_NAMED} more" * (
        len(unwritten) > _MOST_NAMED
    )
    return (f"{named} ran {hours:.2f} h and wrote no figures: the sums leave out what was served then",)
