"""Series that localcloud's collector scrapes of a server at times that a test chooses, queried by a deployed stack."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import httpx

from bezel_components.metrics.run_monitoring import run_monitoring as configuration
from bezel_localcloud.services.monitoring.collector.run_monitoring import run_monitoring
from bezel_localcloud.services.monitoring.collector.scraper import Scraper, ScrapeResult
from bezel_localcloud.services.monitoring.collector.written_samples import samples_counted
from localcloud_support.in_process import PARENT, Project
from tests.support.rest.fake_google import Answer, Call

if TYPE_CHECKING:
    from pathlib import Path

_PATH = "/monitoring/v1/projects/acme/"


class CollectedSeries:
    """A project whose collector has the configuration of a stack.

    Args:
        folder: Of the project.
        interval_seconds: Time between two scrapes, as the configuration has it.
    """

    def __init__(self, folder: Path, interval_seconds: int = 30) -> None:
        self.project: Any = Project(folder)
        self._interval_seconds = interval_seconds
        self._lock = threading.Lock()
        self.queries = 0

    def scrape(self, text: str, at: float, instance: str = "a1") -> None:
        """Collect a `/metrics` text of an instance at a time."""
        target, result = _scrape(text, instance, self._interval_seconds)
        assert self.project.cloud.prometheus_series.write(at, target, result.samples, result.since) == []

    def scrape_server(self, url: str, at: float, instance: str = "a1") -> str:
        """Collect the `/metrics` of a running server; return its text."""
        text = httpx.get(f"{url}/metrics", timeout=30).text
        self.scrape(text, at, instance)
        return text

    def answer(self, call: Call) -> Answer | None:
        """Answer a query of the deployed stack's project."""
        if call.path.endswith("/timeSeries"):
            return Answer(json={})  # no other revision ran
        if not call.path.startswith(_PATH):
            return None
        with self._lock:
            self.queries += 1
            path = call.path.replace(_PATH, f"/monitoring/v1/{PARENT}/", 1)
            answer = self.project.call("GET", path, None, **call.query)
        return Answer(answer.status_code, json=answer.json())


def count_samples(text: str) -> int:
    """The samples that a collector writes of a `/metrics` text, as Google counts them."""
    return samples_counted(_scrape(text, "a1", 30)[1].samples)


def _scrape(text: str, instance: str, interval_seconds: int) -> tuple[dict[str, str], ScrapeResult]:
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
