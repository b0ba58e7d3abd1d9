"""Google's sidecar that collects Prometheus series, as a part of the daemon: no process is started for it.

It reads the container that takes requests over its socket. Owns the sidecar as a container: configuration from the
mounted secret, output, exit status. Leaves out the scrapes (monitoring/collector).
"""

import asyncio
from contextlib import aclosing

from bezel_localcloud.core.clock import InstanceTiming
from bezel_localcloud.core.logbook import LogSource
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.cloud_run.failures import RevisionFailureError
from bezel_localcloud.services.cloud_run.references import resolve_secret_mounts
from bezel_localcloud.services.cloud_run.runtime.upstream import Upstream, UpstreamError
from bezel_localcloud.services.cloud_run.spec import ContainerSpec
from bezel_localcloud.services.monitoring.collector.collection import (
    Collection,
    CollectorTarget,
    ConfigurationError,
    run_collection,
)
from bezel_localcloud.services.monitoring.collector.scraper import Fetch, ScrapeError

_FILE = "/etc/rungmp/config.yaml"
_LARGEST = 32 << 20  # bytes of a target's answer


class Collector:
    """The sidecar of one instance.

    Attributes:
        exited: Set when it has ended.
        code: Its exit status; None while it runs.
    """

    def __init__(self, cloud: Context, spec: ContainerSpec, source: LogSource, served: str) -> None:
        """Create a collector that is not started yet.

        Args:
            cloud: Holds its configuration, and gets its samples.
            spec: The sidecar.
            source: The instance, with the sidecar's name.
            served: Path of the socket of the container that takes requests; it ends with `:PORT`.

        Raises:
            RevisionFailureError: A secret that it mounts does not exist, or is not readable.
        """
        self.exited = asyncio.Event()
        self.code: int | None = None
        self._cloud, self._spec, self._source, self._served = cloud, spec, source, served
        self._stopped = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        resolve_secret_mounts(cloud, spec)
        resource = {
            "project_id": PROJECT,
            "location": source.location,
            "cluster": "__run__",
            "namespace": source.service,
        }
        labels = {
            "instance": ("instanceId", source.instance),
            "service": ("service_name", source.service),
            "revision": ("revision_name", source.revision),
            "configuration": ("configuration_name", source.service),
        }
        target = CollectorTarget(resource, source.instance, labels, spec.service_account)
        self._collection = Collection(cloud, target, self._configuration, self._fetch, self._say)

    async def start(self) -> None:
        """Start it; one with a wrong configuration ends at once, with its message in the log."""
        try:
            self._collection.configure()
        except ConfigurationError as error:
            self._say("stderr", [str(error)])
            self._end(1)
            return
        self._life = asyncio.create_task(self._live())

    async def wait_for_start(self, _timing: InstanceTiming) -> bool:
        """Whether it runs."""
        return self.code is None

    async def stop(self) -> None:
        """End it after a last scrape."""
        self._stopped.set()
        if self._life is not None:
            await asyncio.gather(self._life, return_exceptions=True)

    async def _live(self) -> None:
        code = 1
        try:
            code = await run_collection(self._collection, self._stopped)
        finally:
            count = f"{self._collection.written} samples were written, as Google counts them."
            self._cloud.logbook.platform(self._source, "INFO", f"localcloud: {count}")
            self._end(code)

    def _end(self, code: int) -> None:
        if not self._stopped.is_set():
            self._cloud.logbook.platform(self._source, "WARNING", f"Container called exit({code}).")
        self.code = code
        self.exited.set()

    def _say(self, stream: str, lines: list[str]) -> None:
        self._cloud.logbook.output(self._source, stream, lines)

    def _configuration(self) -> str | None:
        """The mounted configuration at this moment, None where nothing is mounted in its place."""
        try:
            mounts = resolve_secret_mounts(self._cloud, self._spec)
        except RevisionFailureError as error:
            raise ConfigurationError(f'failed to read file "{_FILE}": {error.text}') from None
        contents = {
            f"{mount.path.rstrip('/')}/{file.path}": file.content for mount, files in mounts.items() for file in files
        }
        return contents[_FILE].decode(errors="replace") if _FILE in contents else None

    def _fetch(self, port: str) -> Fetch:
        """How a port of the instance is read: only that of the container that takes requests answers."""

        async def fetch(path: str, seconds: float) -> str:
            if port != self._served.rpartition(":")[2]:
                raise ScrapeError(f"dial tcp 0.0.0.0:{port}: connect: connection refused")
            return await read_metrics(self._served, path, seconds)

        return fetch


async def read_metrics(address: str, path: str, seconds: float) -> str:
    """Read a target's metrics from its socket.

    Raises:
        ScrapeError: It does not answer in time, or with another status than 200, or with too much.
    """
    headers = [(b"host", b"localhost"), (b"accept", b"text/plain;version=0.0.4"), (b"user-agent", b"localcloud")]
    content = bytearray()
    try:
        async with asyncio.timeout(seconds), Upstream(address) as upstream:
            status, _ = await upstream.send("GET", path, headers, b"")
            if status != 200:
                raise ScrapeError(f"server returned HTTP status {status}")
            async with aclosing(upstream.pieces()) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    content += piece
                    if len(content) > _LARGEST:
                        raise ScrapeError(f"the answer has more than {_LARGEST} bytes")
    except TimeoutError:
        raise ScrapeError("context deadline exceeded") from None
    except UpstreamError as error:
        raise ScrapeError(f"connect: {error}") from None
    return content.decode(errors="replace")
