"""Failover between the regions behind one address: what finds a dead region, and how long it stays in use. Pure.

Owns the numbers, for the plan's text and for the resources alike (`bezel_components.global_address`). Leaves the
resources to the components.

Cloud Run tells the balancer the health of a region's service by its instances' readiness probes; that needs an instance
at all times in each region. Where a region scales to zero, outlier detection counts failed answers instead. Facts:
Cloud Run's page on service health, the discovery document of Compute (both November 2026).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from bezel.planner.base.settings import ProbeSettings

if TYPE_CHECKING:
    from bezel.planner.base.settings import Scaling

Failover = Literal["none", "service health", "outlier detection"]

FAILURES = 5
"""Answers of 500 to 599 in a row after which a proxy leaves a region out."""
SWEEP_SECONDS = 1
"""Between two sweeps of outlier detection, at which a region is left out or taken back."""
EJECTION_SECONDS = 30
"""Time for which a region is left out, times the number of times that it was."""
# Three failures: one alone may be a server that is busy. vLLM answers /health apart from its engine's steps.
READINESS = {"initial_delay_seconds": 0, "period_seconds": 5, "timeout_seconds": 4, "failure_threshold": 3}


def keeps_instances(scaling: Scaling) -> bool:
    """Whether an instance runs in each region at all times."""
    return max(scaling.min_instances, min((each.min_instances for each in scaling.schedule), default=0)) > 0


def failover_of(regions: int, scaling: Scaling) -> Failover:
    """What finds a dead region behind an address.

    Args:
        regions: number of the regions.
        scaling: of the service in each of them.
    """
    if regions < 2:
        return "none"
    return "service health" if keeps_instances(scaling) else "outlier detection"


def readiness_probe(failover: Failover) -> ProbeSettings | None:
    """The readiness probe of the services; None where no balancer reads their health."""
    return ProbeSettings(**READINESS) if failover == "service health" else None


def detection_seconds(failover: Failover) -> int | None:
    """How long a dead region gets requests; None where it always does.

    With outlier detection it is counted from the last of `FAILURES` failed answers at a proxy, as no time is bounded
    without requests.
    """
    if failover == "none":
        return None
    if failover == "outlier detection":
        return SWEEP_SECONDS
    return READINESS["period_seconds"] * READINESS["failure_threshold"] + READINESS["timeout_seconds"]
