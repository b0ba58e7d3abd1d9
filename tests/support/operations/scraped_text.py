"""What localcloud's collector makes of a `/metrics` text; needs no project."""

from __future__ import annotations

import asyncio

from bezel_components.metrics.run_monitoring import run_monitoring as configuration
from bezel_localcloud.services.monitoring.collector.run_monitoring import run_monitoring
from bezel_localcloud.services.monitoring.collector.scraper import Scraper, ScrapeResult
from bezel_localcloud.services.monitoring.collector.written_samples import samples_counted


def count_samples(text: str) -> int:
    """The samples that a collector writes of a `/metrics` text, as Google counts them."""
    return samples_counted(scrape_text(text, "a1", 30)[1].samples)


def scrape_text(text: str, instance: str, interval_seconds: int) -> tuple[dict[str, str], ScrapeResult]:
    """The resource of an instance, and what its collector makes of its `/metrics` text."""
    parsed = run_monitoring(configuration(port=8000, interval_seconds=interval_seconds))

    async def fetch(_path: str, _seconds: float) -> str:
        return text

    target = {
        "project_id": "acme",
        "location": "us-east4",
        "cluster": "__run__",
        "namespace": "llm",
        "job": parsed.job,
        "instance": f"{instance}:8000",
    }
    labels = {"instanceId": instance, "revision_name": "llm-00002-abc", "service_name": "llm"}
    scraper = Scraper(parsed.endpoints[0], parsed.limits, fetch, target, labels)
    result = asyncio.run(scraper.scrape())
    assert result.failure == ""
    return target, result
