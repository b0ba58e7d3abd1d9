"""MetricsPlan: the collector that writes vLLM's figures to Managed Service for Prometheus, and its samples.

Owns the collector's image and its share of an instance. Leaves the kept series to `bezel_catalog.vllm.kept_series`.

Facts: with instance-based billing and the second generation, which a GPU needs, Cloud Run refuses less than 1 vCPU (its
page on CPU limits, November 2026), so the collector has a whole one. A container that ends, ends its instance, so it
has twice the 512 MiB of Google's example; in whole GiB, as the price of a preview counts memory. It looks for another
configuration every 20 s (run-gmp-sidecar, entrypoint.go, read 2026-11-29), and each read of a mounted secret is one of
Secret Manager (Cloud Run's page on secrets, November 2026).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.base.deployment import ImagePlan
from bezel.planner.cost.metrics_cost import MetricsCost
from bezel_catalog.vllm.kept_series import (
    RECORDED_SAMPLES,
    SAMPLES_ABOUT_A_SCRAPE,
    SAMPLES_ABOUT_A_TARGET,
    SAMPLES_ABOUT_ITSELF,
    samples_of_scrape,
)

if TYPE_CHECKING:
    from bezel.planner.base.settings import Settings

# Google's collector for Cloud Run; `latest` was this digest too, uploaded 2026-07-15. Its Go modules have a finding
# without a newer release: CVE-2026-56854 in golang.org/x/crypto/ssh, and the collector serves no SSH (tags and scan as
# others read them on 2026-09-05).
COLLECTOR_IMAGE = ImagePlan(
    "us-docker.pkg.dev",
    "cloud-ops-agents-artifacts/cloud-run-gmp-sidecar/cloud-run-gmp-sidecar",
    "1.9.2",
    "sha256:ff1fc68871118f1032a3ce17e2b0abd703292e883989d220244330ebdf522fd1",
)
INTERVAL_SECONDS = 30  # the collector's own default
COLLECTOR_CPU, COLLECTOR_MEMORY_GIB = 1, 1
_SCRAPES_PER_HOUR = 3600 // INTERVAL_SECONDS
_READS_PER_HOUR = 3600 // 20


@dataclass(frozen=True, slots=True)
class MetricsPlan:
    """The collector beside each server.

    Attributes:
        image: of the collector on Cloud Run; that of leased machines is another.
        interval_seconds: time between two scrapes.
        cpu: vCPUs of the collector; 0 on leased machines, whose price has them.
        memory_gib: memory of the collector, likewise.
        samples_per_instance_hour: that a server writes in an hour at most.
        cost: of samples and reads of the configuration; a service's own cost has the collector's vCPU and memory.
    """

    image: ImagePlan
    interval_seconds: int
    cpu: int
    memory_gib: int
    samples_per_instance_hour: int
    cost: MetricsCost


def metrics_cost(*, leased: bool) -> MetricsCost:
    """What the figures of one server cost; a leased machine has the configuration with its metadata.

    Args:
        leased: whether the server is on a leased machine.
    """
    about = 0 if leased else SAMPLES_ABOUT_A_TARGET * _SCRAPES_PER_HOUR + SAMPLES_ABOUT_ITSELF * 60
    return MetricsCost(
        highest=samples_of_scrape() * _SCRAPES_PER_HOUR + about,
        typical=(RECORDED_SAMPLES + SAMPLES_ABOUT_A_SCRAPE) * _SCRAPES_PER_HOUR + about,
        reads=0 if leased else _READS_PER_HOUR,
    )


def metrics_plan(settings: Settings, *, leased: bool) -> MetricsPlan | None:
    """The collector of a stack; None where its figures are not kept.

    Args:
        settings: of the stack.
        leased: whether the stack leases machines.
    """
    if not settings.observability.metrics:
        return None
    cost = metrics_cost(leased=leased)
    return MetricsPlan(
        image=COLLECTOR_IMAGE,
        interval_seconds=INTERVAL_SECONDS,
        cpu=0 if leased else COLLECTOR_CPU,
        memory_gib=0 if leased else COLLECTOR_MEMORY_GIB,
        samples_per_instance_hour=cost.highest,
        cost=cost,
    )
