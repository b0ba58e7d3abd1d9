"""Start of a revision that gets the traffic: whether it must start, for how long callers wait, at what price.

The seconds and the price are those of the revision's own plan, which its check kept. A count of instances is Google's
sample of a minute ago; without one, whether it must start is unknown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedService
from bezel.operations.results import format_count
from bezel.operations.service_use.service_metrics import running_instances
from bezel_catalog.quantities import duration_text


def start_notes(
    context: Context,
    service: DeployedService,
    live: Mapping[str, Any],
    revision: Mapping[str, Any],
    start: Mapping[str, Any] | None,
    serving: Sequence[str],
) -> tuple[str, ...]:
    """What is known of the start, as sentences without a full stop.

    Args:
        context: The context.
        service: The stack's service.
        live: The service in run v2's description.
        revision: The revision that gets the traffic.
        start: `seconds` and `usd` of a start by its plan, each as [low, high]; None where they were not kept.
        serving: Short names of the revisions that have the traffic now.
    """
    name = str(revision.get("name") or "").rpartition("/")[2]
    instances = running_instances(context, service, name)
    if instances.count:
        return (f"{name} runs {format_count(instances.count, 'instance')}, by Cloud Monitoring a moment ago: no start",)
    took = start_text(start)
    head = f"{name} must start, it has no instance: the first requests wait, {took}"
    if instances.count is None:
        head = f"whether {name} must start is unknown ({instances.unknown_because}); a start takes: {took}"
    minimum = max(int((each.get("scaling") or {}).get("minInstanceCount") or 0) for each in (revision, live))
    notes = [head]
    if minimum:
        notes.append(f"it keeps {format_count(minimum, 'instance')} at least, started with the move")
    holders = " and ".join(serving)
    notes.append(
        f"idle instances of {holders} hold their GPUs for up to 15 minutes more: where the quota has no room for both, "
        f"{name} starts after them"
    )
    return tuple(notes)


def start_text(start: Mapping[str, Any] | None) -> str:
    """Seconds and price of a start, each of them unknown where it was not kept."""
    seconds, usd = ((start or {}).get(key) for key in ("seconds", "usd"))
    lasts = "for an unknown time" if not seconds else f"{duration_text(seconds[0])} to {duration_text(seconds[1])}"
    costs = "at an unknown price" if not usd else f"{usd[0]:.4f} to {usd[1]:.4f} USD an instance"
    return f"{lasts}, {costs} (estimate of its plan)" if seconds or usd else f"{lasts}, {costs}"
