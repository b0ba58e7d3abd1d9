"""MetricsPlan: the collector that writes vLLM's figures to Managed Service for Prometheus, and its samples.

Owns the collector's image and its share of an instance. Leaves the kept series to `bezel_catalog.vllm.kept_series`.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from bezel.planner.base.deployment import ImagePlan
from bezel.planner.team.metrics_cost import MetricsCost, metrics_cost
from bezel_catalog.vllm.kept_series import samples_of_scrape

if TYPE_CHECKING:
    from bezel.planner.base.settings import Settings

# Google's collector for Cloud Run; `latest` was this digest too, uploaded 2026-07-15. Its Go modules hold a finding
# without a fixed release: CVE-2026-56854 in golang.org/x/crypto/ssh, which the collector does not serve
# (tags and scan read by others on 2026-09-05).
COLLECTOR_IMAGE = ImagePlan(
    "us-docker.pkg.dev",
    "cloud-ops-agents-artifacts/cloud-run-gmp-sidecar/cloud-run-gmp-sidecar",
    "1.9.2",
    "sha256:ff1fc68871118f1032a3ce17e2b0abd703292e883989d220244330ebdf522fd1",
)
INTERVAL_SECONDS = 30  # the collector's own default
# Cloud Run's defaults of a container, with which Google's example runs the collector.
COLLECTOR_CPU, COLLECTOR_MEMORY_GIB = Decimal(1), Decimal("0.5")
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class MetricsPlan:
    """The collector beside each server.

    Attributes:
        image: of the collector on Cloud Run; that of leased machines is another.
        interval_seconds: time between two scrapes.
        cpu: vCPUs of the collector; 0 on leased machines, whose price has them.
        memory_gib: memory of the collector, likewise.
        samples_per_instance_hour: that a server writes in an hour at most.
        cost: of the collector and of the samples.
    """

    image: ImagePlan
    interval_seconds: int
    cpu: Decimal
    memory_gib: Decimal
    samples_per_instance_hour: int
    cost: MetricsCost


def metrics_plan(settings: Settings, *, leased: bool) -> MetricsPlan | None:
    """The collector of a stack; None where its figures are not kept.

    Args:
        settings: of the stack.
        leased: whether the stack leases machines.
    """
    if not settings.observability.metrics:
        return None
    cpu, memory = (Decimal(0), Decimal(0)) if leased else (COLLECTOR_CPU, COLLECTOR_MEMORY_GIB)
    return MetricsPlan(
        image=COLLECTOR_IMAGE,
        interval_seconds=INTERVAL_SECONDS,
        cpu=cpu,
        memory_gib=memory,
        samples_per_instance_hour=samples_of_scrape() * _SECONDS_PER_HOUR // INTERVAL_SECONDS,
        cost=metrics_cost(settings, cpu=cpu, memory_gib=memory),
    )
