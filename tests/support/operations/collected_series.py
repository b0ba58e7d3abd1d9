"""Series that localcloud's collector scrapes of a server at times that a test chooses, queried by a deployed stack."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import httpx

from localcloud_support.in_process import PARENT, Project
from tests.support.operations.scraped_text import scrape_text
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
        target, result = scrape_text(text, instance, self._interval_seconds)
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
