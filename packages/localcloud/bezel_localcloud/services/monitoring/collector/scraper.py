"""Scraper: reads a target's /metrics, relabels its series, and writes them as the sidecar's exporter does.

Owns one configuration's scrapes. Leaves out when they happen (collector.py) and where samples are stored.
Beside the target's own series there are those about each scrape: `up`, `scrape_duration_seconds`,
`scrape_samples_scraped`, `scrape_samples_post_metric_relabeling`, `scrape_series_added`. The sidecar's metrics about
itself (`agent/...`) and `target_info` are left out.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from bezel_localcloud.core.work import TooMuchWorkError
from bezel_localcloud.routing.prometheus_samples import ScrapedSample
from bezel_localcloud.services.monitoring.collector.exposition import ExpositionError, labels_of, parse_exposition
from bezel_localcloud.services.monitoring.collector.relabeling import relabel
from bezel_localcloud.services.monitoring.collector.run_monitoring import Limits, ScrapeEndpoint
from bezel_localcloud.services.monitoring.collector.written_samples import written_samples

Fetch = Callable[[str, float], Awaitable[str]]
"""(path with its query, seconds at most) -> the text of a target's metrics; raises ScrapeError."""
_START = "process_start_time_seconds"
_OF_TARGET = ("job", "cluster", "namespace", "instance")  # of the resource; no rule changes them
_MOST_KNOWN = 50_000  # series whose labels are remembered


class ScrapeError(Exception):
    """A scrape that failed; the text says why."""


@dataclass(frozen=True)
class ScrapeResult:
    """Samples of a scrape, and since when its counters count, as far as the target tells it.

    Attributes:
        failure: Why the scrape failed, "" if it did not.
    """

    samples: list[ScrapedSample]
    since: float | None
    failure: str = ""


class Scraper:
    """The scrapes of one endpoint.

    Attributes:
        resource: Labels of the monitored resource.
    """

    def __init__(
        self,
        endpoint: ScrapeEndpoint,
        limits: Limits,
        fetch: Fetch,
        resource: Mapping[str, str],
        labels: Mapping[str, str],
    ) -> None:
        """Make a scraper.

        Args:
            endpoint: What is scraped, and how it is relabelled.
            limits: Bounds of one scrape.
            fetch: Reads the target.
            resource: Labels of the monitored resource.
            labels: Labels that each series gets.
        """
        self.endpoint = endpoint
        self.resource = dict(resource)
        self._limits = limits
        self._fetch = fetch
        self._labels = dict(labels)
        self._known: dict[str, dict[str, str] | None] = {}
        self._before: set[str] = set()

    async def scrape(self) -> ScrapeResult:
        """Read the target once; a failure gives the series about the scrape alone."""
        begun = time.monotonic()
        query = urlencode([(name, value) for name, values in self.endpoint.params.items() for value in values])
        path = f"{self.endpoint.path}?{query}" if query else self.endpoint.path
        scraped, kept, kinds, failure = 0, dict[str, tuple[dict[str, str], float]](), dict[str, str](), ""
        try:
            exposition = parse_exposition(await self._fetch(path, self.endpoint.timeout))
            scraped, kinds = len(exposition.series), exposition.kinds
            kept = {text: (labels, value) for text, value in exposition.series if (labels := self._labels_of(text))}
            self._check_limits(kept)
        except (ScrapeError, ExpositionError, TooMuchWorkError) as error:
            kept, failure = {}, str(error)
        added, self._before = len(kept.keys() - self._before), set(kept)
        since = next((value for labels, value in kept.values() if labels["__name__"] == _START), None)
        about = {
            "up": float(not failure),
            "scrape_duration_seconds": time.monotonic() - begun,
            "scrape_samples_scraped": float(scraped),
            "scrape_samples_post_metric_relabeling": float(len(kept)),
            "scrape_series_added": float(added),
        }
        samples = written_samples(kept.values(), kinds)
        samples += [ScrapedSample(name, "gauge", self._labels, value) for name, value in about.items()]
        return ScrapeResult(samples, since, failure)

    def _labels_of(self, series: str) -> dict[str, str] | None:
        """The labels of a series after relabelling, with those of its target; None where a rule drops it."""
        if series not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            target = self._labels | {name: self.resource[name] for name in _OF_TARGET}
            scraped = {f"exported_{name}" if name in target else name: text for name, text in labels_of(series).items()}
            labels = relabel(scraped | target, self.endpoint.rules)
            if labels is not None:
                labels = {name: text for name, text in labels.items() if name not in self.resource}
            self._known[series] = labels if labels and labels.get("__name__") else None
        return self._known[series]

    def _check_limits(self, kept: Mapping[str, tuple[Mapping[str, str], float]]) -> None:
        limits = self._limits
        if limits.samples and len(kept) > limits.samples:
            raise ScrapeError("sample limit exceeded")
        for labels, _ in kept.values():
            if limits.labels and len(labels) + len(self.resource) > limits.labels:
                raise ScrapeError(f"label_limit exceeded (metric: {labels['__name__']}, limit: {limits.labels})")
            for name, text in labels.items():
                if limits.name_length and len(name) > limits.name_length:
                    raise ScrapeError(f"label_name_length_limit exceeded (label: {name}, limit: {limits.name_length})")
                if limits.value_length and len(text) > limits.value_length:
                    raise ScrapeError(
                        f"label_value_length_limit exceeded (label: {name}, limit: {limits.value_length})"
                    )
