"""Context of handlers, controllers and machines: the project's state, and the parts that reconcile it.

Owns the shapes. Leaves composition to `bezel_localcloud.cloud`, so that users of the context do not import its parts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from starlette.types import ASGIApp

from bezel_localcloud.access.credentials.issuer_keys import IssuerKeys
from bezel_localcloud.access.credentials.tokens import Tokens
from bezel_localcloud.access.permissions import Access
from bezel_localcloud.core.clock import PlatformClock
from bezel_localcloud.core.files.blobs import BlobFiles
from bezel_localcloud.core.files.objects import ObjectFiles
from bezel_localcloud.core.files.secret_folders import SecretFolders
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.logbook import Logbook
from bezel_localcloud.core.operations import Operations
from bezel_localcloud.core.paths import Paths
from bezel_localcloud.core.store import Store
from bezel_localcloud.faults.registry import Faults
from bezel_localcloud.http.request_log import Breakpoints
from bezel_localcloud.machines.capacity import Held
from bezel_localcloud.machines.lifecycle import Life
from bezel_localcloud.machines.node_spec import NodeHost
from bezel_localcloud.processes.sockets import Sockets
from bezel_localcloud.routing.generation import Generation
from bezel_localcloud.routing.prometheus_samples import ScrapedSample, StoredSeries


class Series(NamedTuple):
    """Key of one series: a quota's metric in a region or zone."""

    metric: str
    location: str


class Point(NamedTuple):
    """A sample: Unix seconds, and the amount as the quota counts."""

    time: float
    used: int


class RevisionUse(NamedTuple):
    """Instances of a revision that start or serve requests, idle ones, and the seconds that all of them ran so far."""

    active: int
    idle: int
    seconds: float


class Services(Protocol):
    """Reconciles Cloud Run services with the store; every call returns at once."""

    def open_ingress(self, name: str, tag: str = "") -> str:
        """Return the address of a service's ingress, which is open from now on."""

    def routing(self, service: Json) -> Json:
        """The part of a service that follows from its revisions: traffic, tags, URLs."""

    def deploy(self, name: str, operation: str, revision: str) -> None:
        """Start a revision in the background."""

    def abort_deployment(self, name: str) -> None:
        """Abort the running deployment, if any."""

    def apply_scaling(self, service: Json) -> None:
        """Apply changed scaling bounds to the running instances."""

    def remove(self, name: str) -> None:
        """End all instances of a deleted service."""

    def instance_counts(self, name: str) -> Counter[str]:
        """Number of instances of a service by revision."""

    def use(self, name: str) -> dict[str, RevisionUse]:
        """What each revision of a service that had an instance uses, and used."""

    def application(self, name: str, tag: str = "") -> ASGIApp | None:
        """What serves the address of a service, or of a tag, for a balancer of this process; None without one."""

    def readiness(self, name: str) -> float | None:
        """Share of a service's instances that are ready; None where the service sends no signal of health."""

    def is_drained(self, region: str) -> bool:
        """Whether a balancer sends a region no further requests."""


class LoadBalancers(Protocol):
    """Serves the load balancers of a project."""

    def description(self) -> Json:
        """Where they listen, and which regions they use."""

    def move_clients(self, place: str) -> None:
        """Take clients to be in a region or a part of the world from now on."""


class Jobs(Protocol):
    """Runs the executions of Cloud Run jobs."""

    def start(self, name: str) -> None:
        """Run an execution that the store holds."""

    def cancel(self, name: str) -> None:
        """End the tasks of an execution."""

    def remove(self, prefix: str) -> None:
        """End the tasks of deleted executions."""


class Machines(Protocol):
    """Reconciles requests for machines with the clock."""

    def advance(self) -> None:
        """Advance every request to its state at this time; every handler calls this first."""

    def begin(self, kind: str, name: str, row: Json) -> None:
        """Store a new request."""

    def begin_late(self, kind: str, name: str, row: Json) -> None:
        """Store a request when its life begins, unless its name is taken then."""

    def move(self, kind: str, name: str, row: Json, life: Life) -> None:
        """Move a request to another state now."""

    def set_metadata(self, kind: str, name: str, row: Json, metadata: dict[str, str], **changes: Json) -> None:
        """Store other attributes of a machine and other fields of its row, and hand the attributes to the machine."""

    def end_all(self, *, lost: bool) -> list[str]:
        """End every running machine and return their names."""

    def held_machines(self) -> list[Held]:
        """Requests that count in stock and quotas."""

    def quotas(self, place: str | None = None) -> dict[str, int]:
        """The project's limit of each quota: in a place, or without one the initial limit."""

    def accepts_flex_start(self, zone: str) -> bool:
        """Whether a zone accepts requests of that provisioning model."""


class Scheduler(Protocol):
    """Runs the jobs of Cloud Scheduler."""

    def wake(self) -> None:
        """Look at all jobs again, since one of them has changed."""

    def run_now(self, name: str) -> None:
        """Run a job in the background, whatever its state."""


class QuotaUse(Protocol):
    """Samples the use of each quota."""

    def series(self) -> Mapping[Series, Sequence[Point]]:
        """The points of each series of the last day, oldest first."""


class Sample(NamedTuple):
    """A sample of a metric: the interval that it is about, in Unix seconds, and its value."""

    start: float
    end: float
    value: float


class RevisionSeries(NamedTuple):
    """Key of one series of a Cloud Run service: the metric, its revision, and its labels `state` or `response_code`."""

    metric: str
    location: str
    service: str
    revision: str
    state: str = ""
    response_code: str = ""


class ServiceUse(Protocol):
    """Samples the instances of Cloud Run services, and their requests."""

    def add_request(self, revision: str, status: int) -> None:
        """Count a request that an instance of a revision answered."""

    def series(self) -> Mapping[RevisionSeries, Sequence[Sample]]:
        """The samples of each series that can be read by now, oldest first."""


class WrittenSeries(Protocol):
    """Stores the Prometheus series that collectors write."""

    def write(
        self, time: float, resource: Mapping[str, str], samples: Iterable[ScrapedSample], since: float | None = None
    ) -> list[ScrapedSample]:
        """Add the samples of a scrape; return those that are not newer than the last one of their series."""

    def series(self) -> Iterator[StoredSeries]:
        """Every series."""


class LogCounts(Protocol):
    """Counts log entries for the metrics that the project defines on them."""

    async def count(self) -> None:
        """Count the entries that are new."""

    def series(self) -> Iterator[StoredSeries]:
        """The series as they were counted last; their family is the metric's type."""


class Context(Protocol):
    """One project of the embedded cloud.

    Attributes:
        base: Address of the APIs, set once the daemon listens.
        faults: Injected failures.
        sockets: Socket files that instances listen on.
        secret_folders: Secrets that instances mount.
        nodes: Runs the machines of the TPU API and of Compute Engine.
        generation: What the project is of those that the daemon has served.
    """

    base: str
    generation: Generation
    layout: Paths
    pace: PlatformClock
    store: Store
    faults: Faults
    access: Access
    operations: Operations
    logbook: Logbook
    objects: ObjectFiles
    blobs: BlobFiles
    tokens: Tokens
    issuers: IssuerKeys
    sockets: Sockets
    secret_folders: SecretFolders
    holds: Breakpoints

    @property
    def services(self) -> Services:
        """Cloud Run services."""

    @property
    def balancers(self) -> LoadBalancers:
        """Load balancers."""

    @property
    def jobs(self) -> Jobs:
        """Cloud Run jobs."""

    @property
    def machines(self) -> Machines:
        """Requests for machines."""

    @property
    def quota_use(self) -> QuotaUse:
        """Samples of the use of quotas."""

    @property
    def service_use(self) -> ServiceUse:
        """Samples of the instances of services."""

    @property
    def prometheus_series(self) -> WrittenSeries:
        """Series that collectors write."""

    @property
    def log_counts(self) -> LogCounts:
        """Counts of log entries."""

    @property
    def scheduler(self) -> Scheduler:
        """Jobs of Cloud Scheduler."""

    @property
    def nodes(self) -> NodeHost:
        """Host of the machines."""

    def is_enabled(self, api: str) -> bool:
        """Whether the project has enabled an API."""
