"""Collector on a machine: Google's build of Prometheus, as a part of the daemon in place of its container.

It scrapes the containers of its machine by their ports, and writes what its rules keep, if the machine reaches Google
and its account may. It has no last scrape. Leaves out the scrapes (services/monitoring/collector).
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.machines.node_spec import NodeSpec
from bezel_localcloud.node.reachability import Ways
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.cloud_run.runtime.containers.collector import read_metrics
from bezel_localcloud.services.monitoring.collector.collection import writing_refusal
from bezel_localcloud.services.monitoring.collector.counted_from_first import CountedFromFirst
from bezel_localcloud.services.monitoring.collector.prometheus_configuration import ScrapeTarget, scrape_targets
from bezel_localcloud.services.monitoring.collector.run_monitoring import ConfigurationError
from bezel_localcloud.services.monitoring.collector.scraper import ScrapeError, Scraper

_LOG_LINES = 2000
_LEAST = 1.0  # real seconds between two scrapes
_OPTION = "--config.file="
_OF_RESOURCE = ("project_id", "location", "cluster", "namespace", "job", "instance")


class NodeCollector:
    """The collector's container.

    Attributes:
        status: created, running or exited; one with a wrong configuration restarts without end, which is `restarting`.
        restarts: Number of restarts.
        code: Exit status.
        log: The last lines of its output.
    """

    def __init__(
        self,
        cloud: Context,
        spec: NodeSpec,
        ways: Ways,
        arguments: Sequence[str],
        volumes: dict[str, str],
        address_of: Callable[[str], str | None],
    ) -> None:
        """Create a collector that is not started yet.

        Args:
            cloud: Gets its samples.
            spec: Its machine.
            ways: The network around the machine.
            arguments: Its command line.
            volumes: Path in the container -> path on this computer.
            address_of: Path of the socket of the container that has a port of the machine; None for none.
        """
        self.status = "created"
        self.restarts = self.code = 0
        self.log: deque[str] = deque(maxlen=_LOG_LINES)
        self._cloud, self._spec, self._ways, self._address_of = cloud, spec, ways, address_of
        self._arguments, self._volumes = arguments, volumes
        self._scrapes: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start it; a wrong configuration is in its log."""
        try:
            targets = scrape_targets(self._configuration())
        except ConfigurationError as error:
            self.log.append(f'level=ERROR msg="Error loading config" err="{error}"')
            self.status, self.code = "restarting", 2
            return
        self.status = "running"
        self._scrapes = [asyncio.create_task(self._repeat(target)) for target in targets]

    async def stop(self) -> None:
        """End it."""
        for scrape in self._scrapes:
            scrape.cancel()
        await asyncio.gather(*self._scrapes, return_exceptions=True)
        self.status = "exited"

    def _configuration(self) -> str:
        path = next((word.removeprefix(_OPTION) for word in self._arguments if word.startswith(_OPTION)), "")
        for inside, outside in self._volumes.items():
            if path.startswith(f"{inside}/"):
                path = f"{outside}{path.removeprefix(inside)}"
                break
        else:
            raise ConfigurationError(f"couldn't load configuration (--config.file={path}): no such file or directory")
        try:
            return Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError):
            raise ConfigurationError(f"open {path}: no such file or directory") from None

    async def _repeat(self, target: ScrapeTarget) -> None:
        pace, interval = self._cloud.pace, target.endpoint.interval
        scraper = self._scraper(target)
        # Prometheus begins at a point of the interval that follows from the target.
        share = int.from_bytes(hashlib.sha256(repr(sorted(target.labels.items())).encode()).digest()[:4]) / 2**32
        adjusted = CountedFromFirst()
        await asyncio.sleep(pace.seconds(interval * share))
        while True:
            time = pace.now()
            result = await scraper.scrape()
            if result.failure:
                self.log.append(f'level=DEBUG msg="Scrape failed" err="{result.failure}"')
            samples = adjusted.adjust(result.samples)
            if refusal := self._refusal():
                self.log.append(f'level=WARN component=gcm_exporter msg="send failed" err="{refusal}"')
            else:
                self._cloud.prometheus_series.write(time, scraper.resource, samples)
            await asyncio.sleep(max(_LEAST, pace.seconds(interval)))

    def _scraper(self, target: ScrapeTarget) -> Scraper:
        resource = {"project_id": PROJECT, "location": "", "cluster": "", "namespace": ""}
        resource |= {name: text for name, text in target.labels.items() if name in _OF_RESOURCE}
        labels = {name: text for name, text in target.labels.items() if name not in _OF_RESOURCE}

        async def fetch(path: str, seconds: float) -> str:
            address = self._address_of(target.endpoint.port)
            if address is None:
                raise ScrapeError(f"dial tcp 127.0.0.1:{target.endpoint.port}: connect: connection refused")
            return await read_metrics(address, path, seconds)

        return Scraper(target.endpoint, target.limits, fetch, resource, labels)

    def _refusal(self) -> str:
        if not self._ways.google():
            return "rpc error: code = Unavailable desc = connection timed out"
        return writing_refusal(self._cloud, self._spec.service_account)
