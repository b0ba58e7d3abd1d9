"""Collection: the scrapes of a configuration in time, each written if the account may, with what the collector prints.

The first scrape is ten seconds after the start, the next ones at each interval, the last one at the end, as Google's
page on the sidecar has it; all in the platform's time, but a second of this machine's apart at least. Every twenty
seconds the configuration is read again, as the sidecar does. Not modelled: retries of a failed write.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.monitoring.collector.run_monitoring import (
    ConfigurationError,
    RunMonitoring,
    run_monitoring,
)
from bezel_localcloud.services.monitoring.collector.scraper import Fetch, Scraper
from bezel_localcloud.services.monitoring.collector.written_samples import samples_counted

_FIRST, _READ_AGAIN = 10.0, 20.0  # seconds of the platform
_LEAST = 1.0  # real seconds between two scrapes
_LAST = 5.0  # real seconds for the last scrape; ten on Cloud Run for all that a container does after SIGTERM
_WRITING = "monitoring.timeSeries.create"
_API = "monitoring.googleapis.com"


@dataclass(frozen=True)
class CollectorTarget:
    """Where a collector runs, and what it tells of that.

    Attributes:
        resource: Labels of the monitored resource but `job` and `instance`.
        instance: Id that `instance` begins with.
        labels: Label of each series by its key in METADATA.
        account: Service account that writes.
    """

    resource: Mapping[str, str]
    instance: str
    labels: Mapping[str, tuple[str, str]]
    account: str


@dataclass
class Collection:
    """The scrapes of one collector.

    Attributes:
        cloud: Gets the samples.
        target: What it tells of itself.
        read: The text of its configuration at this moment, None for none; raises ConfigurationError.
        fetches: (port) -> how it is read.
        say: Gets what it prints: the name of the stream and the lines.
        written: Samples that it has written, as Google counts them.
    """

    cloud: Context
    target: CollectorTarget
    read: Callable[[], str | None]
    fetches: Callable[[str], Fetch]
    say: Callable[[str, list[str]], None]
    written: int = 0
    _text: str | None = None
    _scrapers: list[Scraper] = field(default_factory=list)
    _started_at: float = 0.0

    def configure(self) -> None:
        """Read the configuration.

        Raises:
            ConfigurationError: It is none.
        """
        self._started_at = self._started_at or self.cloud.pace.now()
        self._text = self.read()
        configuration = RunMonitoring() if self._text is None else run_monitoring(self._text)
        if self._text is not None:
            self.say("stderr", ["confgenerator: using RunMonitoring config:", *self._text.splitlines()])
        labels = dict(self.target.labels[key] for key in configuration.metadata if key in self.target.labels)
        self._scrapers = [
            Scraper(
                endpoint,
                configuration.limits,
                self.fetches(endpoint.port),
                {
                    **self.target.resource,
                    "job": configuration.job,
                    "instance": f"{self.target.instance}:{endpoint.port}",
                },
                labels,
            )
            for endpoint in configuration.endpoints
        ]

    async def run(self) -> None:
        """Scrape until cancelled.

        Raises:
            ConfigurationError: The configuration was replaced by none.
        """
        while True:
            text = self._text
            scrapes = [asyncio.create_task(self._repeat(scraper)) for scraper in self._scrapers]
            try:
                await self._change(text)
            finally:
                for scrape in scrapes:
                    scrape.cancel()
                await asyncio.gather(*scrapes, return_exceptions=True)
            self.configure()
            self.say("stderr", ["entrypoint: reloaded OTel config"])

    async def _change(self, text: str | None) -> None:
        """Wait until the configuration is another one."""
        pause = max(_LEAST, self.cloud.pace.seconds(_READ_AGAIN))
        while self.read() == text:  # noqa: ASYNC110 - a secret has no event
            await asyncio.sleep(pause)

    async def finish(self) -> None:
        """Scrape once more, at the end."""
        self.say("stderr", ["collector: stopping collector's prometheus receiver"])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST):
                await asyncio.gather(*(self._scrape(scraper) for scraper in self._scrapers))
        self.say("stderr", ["collector: final scrape complete. Shutting down rest of pipeline"])

    async def _repeat(self, scraper: Scraper) -> None:
        await asyncio.sleep(self.cloud.pace.seconds(_FIRST))
        while True:
            await self._scrape(scraper)
            await asyncio.sleep(max(_LEAST, self.cloud.pace.seconds(scraper.endpoint.interval)))

    async def _scrape(self, scraper: Scraper) -> None:
        time = self.cloud.pace.now()
        result = await scraper.scrape()
        if result.failure:
            where = f"0.0.0.0:{scraper.endpoint.port}{scraper.endpoint.path}"
            self.say("stderr", [f"warn Failed to scrape Prometheus endpoint {where}: {result.failure}"])
        if refusal := writing_refusal(self.cloud, self.target.account):
            lost = f"Exporting failed. Dropping data. error: {refusal}, dropped_items: {len(result.samples)}"
            self.say("stderr", [f"error {lost}"])
            return
        # Without the server's own start time, its counters count since the collector's start.
        since = self._started_at if result.since is None else result.since
        refused = self.cloud.prometheus_series.write(time, scraper.resource, result.samples, since)
        self.written += samples_counted(result.samples) - samples_counted(refused)


def writing_refusal(cloud: Context, account: str) -> str:
    """Why an account may not write series, "" if it may; in the words of Google's error."""
    if not cloud.is_enabled(_API):
        text = f"Cloud Monitoring API has not been used in project {PROJECT} before or it is disabled."
    elif not cloud.access.allows(account, _WRITING, f"projects/{PROJECT}"):
        text = f"Permission {_WRITING} denied (or the resource may not exist)."
    else:
        return ""
    return f"rpc error: code = PermissionDenied desc = {text}"


async def run_collection(collection: Collection, stopped: asyncio.Event) -> int:
    """Run a configured collection until it is stopped, with the last scrape; return the collector's exit status."""
    running = asyncio.create_task(collection.run())
    stop = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait([running, stop], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            collection.say("stderr", [str(running.exception())])
            return 1
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        collection.say("stderr", ["entrypoint: terminated signal caught"])
        await collection.finish()
        collection.say("stderr", ["entrypoint: sidecar exited"])
        return 0
    finally:
        running.cancel()
        stop.cancel()


__all__ = ["Collection", "CollectorTarget", "ConfigurationError", "run_collection", "writing_refusal"]
