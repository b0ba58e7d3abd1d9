"""Requests to Google's APIs that are understood: their method, address and query, and what they are for.

Every other request that may write is not understood. Source of the paths: the discovery documents of the APIs. What may
be deleted is machines, services and what runs on them: nothing whose deletion opens or raises something, as that of a
firewall rule, a policy, a lock or a limit does.
"""

import re
from dataclasses import dataclass, field
from typing import Literal

from bezel.resource_cost.requests.fields import INSTANCE, MINIMUM, NODE, QUEUED_RESOURCE, Fields
from bezel.resource_cost.requests.google_hosts import Address

Kind = Literal["queued resource", "node", "instance", "minimum", ""]
"""What a request asks for; empty for nothing that costs money."""
_TPU, _RUN, _COMPUTE = (
    ("tpu.googleapis.com",),
    ("run.googleapis.com",),
    ("compute.googleapis.com", "www.googleapis.com"),
)
_NAME = re.compile(r"\{(\w+)\}")
# A method of Google's APIs that only reads is GET; some with a verb of their own do more (`:restore`, `:cancel`).
_READING = re.compile(r"[^:]*(?::(?:get|list|search|fetch|lookup|query|read|check|test)\w*)?")


@dataclass(frozen=True, slots=True)
class Form:
    """A request that is understood.

    Attributes:
        about: what it is for, for the document.
        method: of HTTP.
        hosts: in any of which it may be.
        paths: templates with `{names}`, each for a part of the path.
        query: names that its query may have.
        kind: what it asks for.
        body: the fields that its body may have; None for a request without one.
    """

    about: str
    method: str
    hosts: tuple[str, ...]
    paths: tuple[str, ...]
    query: frozenset[str] = frozenset()
    kind: Kind = ""
    body: Fields | None = None
    _patterns: tuple[re.Pattern[str], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        patterns = tuple(re.compile(_NAME.sub(r"(?P<\1>[^/:]+)", path)) for path in self.paths)
        object.__setattr__(self, "_patterns", patterns)

    def places(self, method: str, address: Address) -> dict[str, str] | None:
        """The named parts of the path, if a request has this form."""
        if method != self.method or address.host not in self.hosts or not self.query.issuperset(address.query):
            return None
        matches = (pattern.fullmatch(address.path) for pattern in self._patterns)
        return next((match.groupdict() for match in matches if match), None)


def _tpu(path: str) -> tuple[str, ...]:
    return tuple(f"/{version}/projects/{{project}}/locations/{{zone}}/{path}" for version in ("v2alpha1", "v2"))


def _compute(*paths: str) -> tuple[str, ...]:
    return tuple(f"/compute/v1/projects/{{project}}/{path}" for path in paths)


def _location_paths(version: str, *paths: str) -> tuple[str, ...]:
    return tuple(f"/{version}/projects/{{project}}/locations/{{location}}/{path}" for path in paths)


_ID = frozenset({"requestId"})
FORMS = (
    Form(
        "a TPU by a queue", "POST", _TPU, _tpu("queuedResources"), _ID | {"queuedResourceId"}, "queued resource",
        QUEUED_RESOURCE,
    ),
    Form("a TPU without a queue", "POST", _TPU, _tpu("nodes"), _ID | {"nodeId"}, "node", NODE),
    Form("a machine", "POST", _COMPUTE, _compute("zones/{zone}/instances"), _ID, "instance", INSTANCE),
    Form(
        "a service's own minimum", "PATCH", _RUN, _location_paths("v2", "services/{service}"),
        frozenset({"updateMask"}), "minimum", MINIMUM,
    ),
    Form(
        "the stop of a machine", "POST", _COMPUTE,
        _compute("zones/{zone}/instances/{name}/stop", "zones/{zone}/instances/{name}/suspend"), _ID,
    ),
    Form("the stop of a TPU", "POST", _TPU, _tpu("nodes/{name}:stop")),
    Form("the end of a job's run", "POST", _RUN, _location_paths("v2", "jobs/{job}/executions/{name}:cancel")),
    Form(
        "the end of a lease", "DELETE", _TPU, (*_tpu("queuedResources/{name}"), *_tpu("nodes/{name}")), _ID | {"force"}
    ),
    Form(
        "the end of machines", "DELETE", _COMPUTE,
        _compute(
            "zones/{zone}/instances/{name}", "zones/{zone}/instanceGroupManagers/{name}", "zones/{zone}/disks/{name}",
            "regions/{region}/instanceGroupManagers/{name}", "regions/{region}/disks/{name}",
        ),
        _ID,
    ),
    Form(
        "the end of what Cloud Run runs", "DELETE", _RUN,
        _location_paths(
            "v2", "services/{name}", "services/{service}/revisions/{name}", "jobs/{name}", "workerPools/{name}",
            "jobs/{job}/executions/{name}",
        ),
    ),
    Form(
        "the end of a cluster", "DELETE", ("container.googleapis.com",),
        (
            *_location_paths("v1", "clusters/{name}", "clusters/{cluster}/nodePools/{name}"),
            "/v1/projects/{project}/zones/{zone}/clusters/{name}",
            "/v1/projects/{project}/zones/{zone}/clusters/{cluster}/nodePools/{name}",
        ),
    ),
    Form(
        "the end of jobs of Vertex AI", "DELETE", ("aiplatform.googleapis.com",),
        _location_paths(
            "v1", "endpoints/{name}", "customJobs/{name}", "trainingPipelines/{name}", "batchPredictionJobs/{name}"
        ),
    ),
    Form("the end of a Batch job", "DELETE", ("batch.googleapis.com",), _location_paths("v1", "jobs/{name}")),
)  # fmt: skip
"""Every request that may write and is understood."""


def only_reads(method: str, address: Address) -> bool:
    """Whether a request reads, and changes nothing."""
    return method in ("GET", "HEAD") and _READING.fullmatch(address.path) is not None
