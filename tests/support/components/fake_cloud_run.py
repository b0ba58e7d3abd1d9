"""One Cloud Run service on a real socket, as far as a rollout reads and moves it."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.support.rest.fake_google import Answer, Call, Server, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

SERVICE = "projects/acme-llm/locations/us-east4/services/chat"
QUOTA = "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion"
PLACES = ["europe-west4", "us-east4", "us-central1", "europe-west4-a", "us-east5-a"]
LATEST = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"
PINNED = "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION"
TAGGED = {"type": LATEST, "tag": "newest"}


def pin(revision: str, percent: int = 100) -> dict[str, Any]:
    return {"type": PINNED, "revision": revision, "percent": percent}


def description(
    *traffic: dict[str, Any], created: str = "chat-2", ready: str = "chat-2", **more: Any
) -> dict[str, Any]:
    """A service as run v2 describes it."""
    return {
        "name": SERVICE,
        "etag": '"1"',
        "traffic": list(traffic),
        "latestCreatedRevision": f"{SERVICE}/revisions/{created}",
        "latestReadyRevision": f"{SERVICE}/revisions/{ready}" if ready else "",
        "terminalCondition": {"type": "Ready", "state": "CONDITION_SUCCEEDED"},
        "template": {},
    } | more


@dataclass
class FakeRun:
    """What the fake answers; tests change it.

    Attributes:
        changes_between: How often somebody else changes the service between a look and the PATCH that follows.
        looks: How often an operation is asked for until it is done.
        lost: How many answers to a PATCH get lost after it was done.
        refusal: Status of every answer, 0 for none.
        quota: The value of the GPUs' quota; None where the API is not enabled.
        full: Regions in which the GPUs' quota is 0.
        denied: Whether the caller may read no quota.
        quotas: Values of other quotas by their ids; any other allows more than enough.
        counted: What Monitoring has counted of quotas, by their ids, and how many seconds ago.
        unmonitored: Why Monitoring may not be read, None where it may be.
        leases: Queued resources that are there, by their full names.
        subnetworks: What Compute Engine says of each, by its full name; None where the caller may see none.
        neighbours: The services of the region; None where the caller may not list them.
        place: Where every bucket is; None where the caller may describe none.
        zone: Every zone, as Cloud DNS describes it; None where there is none.
        records: Records of the zone.
        certificates: Certificates of the project; None where the caller may list none.
    """

    server: Server
    service: dict[str, Any] | None = None
    changes_between: int = 0
    looks: int = 0
    operation_error: str = ""
    lost: int = 0
    refusal: int = 0
    quota: int | None = None
    full: set[str] = field(default_factory=set)
    denied: bool = False
    quotas: dict[str, int] = field(default_factory=dict)
    counted: dict[str, tuple[int, float]] = field(default_factory=dict)
    unmonitored: str | None = None
    leases: set[str] = field(default_factory=set)
    subnetworks: dict[str, dict[str, Any]] | None = field(default_factory=dict)
    neighbours: list[dict[str, Any]] | None = field(default_factory=list)
    place: dict[str, Any] | None = field(default_factory=lambda: {"location": "US-EAST4"})
    zone: dict[str, Any] | None = field(default_factory=lambda: {"dnsName": "acme.example.", "visibility": "public"})
    records: list[dict[str, Any]] = field(default_factory=list)
    certificates: list[dict[str, Any]] | None = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)

    def route(self, call: Call) -> Answer:
        """The answer to any call."""
        if self.refusal:
            return _error(self.refusal, "the refusal of this test")
        others = {
            "cloudquotas": self._quota,
            "monitoring": self._time_series,
            "tpu": self._lease,
            "compute": self._subnetwork,
            "storage": self._bucket,
            "dns": self._zone,
            "certificatemanager": self._certificates,
            "crm": lambda _: Answer(json={"projectId": "acme-llm", "projectNumber": "12345"}),
        }
        if answer := others.get(call.path.split("/")[1]):
            return answer(call)
        if call.path.endswith("/services") and call.method == "GET":
            if self.neighbours is None:
                return _error(403, "Permission 'run.services.list' denied.")
            return Answer(json={"services": self.neighbours})
        if "/operations/" in call.path:
            self.looks -= 1
            return Answer(json=self._operation())
        if self.service is None or call.path != f"/run/v2/{SERVICE}":
            return _error(404, "no such service")
        if call.method == "PATCH":
            return self._patch(call, self.service)
        return Answer(json=self.service)

    def _bucket(self, _call: Call) -> Answer:
        return _error(403, "storage.buckets.get denied") if self.place is None else Answer(json=self.place)

    def _zone(self, call: Call) -> Answer:
        if self.zone is None:
            return _error(404, "The 'parameters.managedZone' resource does not exist.")
        if not call.path.endswith("/rrsets"):
            return Answer(json=self.zone)
        return Answer(json={"rrsets": [each for each in self.records if each["name"] == call.query["name"]]})

    def _certificates(self, _call: Call) -> Answer:
        if self.certificates is None:
            return _error(403, "Permission 'certificatemanager.certs.list' denied.")
        return Answer(json={"certificates": self.certificates})

    def _patch(self, call: Call, service: dict[str, Any]) -> Answer:
        if self.changes_between:
            self.changes_between -= 1
            service["etag"] = f'"{self.changes_between}x"'
        assert call.query == {"updateMask": "traffic"}
        if call.json["etag"] != service["etag"]:
            return _error(409, "the etag given is not the current one")
        self.bodies.append(call.json)
        if not self.operation_error:
            service |= {"traffic": call.json["traffic"], "etag": '"moved"'}
        if self.lost:
            self.lost -= 1
            return Answer(reset=True)
        return Answer(json=self._operation())

    def _operation(self) -> dict[str, Any]:
        name = "projects/acme-llm/locations/us-east4/operations/1"
        if self.looks > 0:
            return {"name": name}
        error = {"error": {"code": 13, "message": self.operation_error}} if self.operation_error else {}
        return {"name": name, "done": True} | error

    def _lease(self, call: Call) -> Answer:
        name = call.path.removeprefix("/tpu/v2alpha1/")
        there = {"name": name, "state": {"state": "WAITING_FOR_RESOURCES"}}
        return Answer(json=there) if name in self.leases else _error(404, f"Resource '{name}' was not found")

    def _subnetwork(self, call: Call) -> Answer:
        name = call.path.removeprefix("/compute/v1/")
        if self.subnetworks is None:
            return _error(403, "Required 'compute.subnetworks.get' permission.")
        subnetwork = self.subnetworks.get(name)
        return Answer(json=subnetwork) if subnetwork else _error(404, f"The resource '{name}' was not found")

    def _quota(self, call: Call) -> Answer:
        name = call.path.rpartition("/")[2]
        if self.denied:
            return _error(403, "Permission 'cloudquotas.quotas.get' denied.")
        if self.quota is None:
            return _error(403, "Cloud Quotas API has not been used in project acme-llm before or it is disabled.")
        value = self.quota if name == QUOTA else self.quotas.get(name, 1 << 50)
        full = self.full if name == QUOTA else set()
        places = [(value, [place for place in PLACES if place not in full]), (0, sorted(full))]
        # As Google's JSON does it: a zero is left out.
        entries = [
            {"details": {"value": str(amount)} if amount else {}, "applicableLocations": where}
            for amount, where in places
        ]
        return Answer(json={"quotaId": name, "metric": f"metric/{name}", "dimensionsInfos": entries})

    def _time_series(self, call: Call) -> Answer:
        """The newest point of the series that the filter's labels belong to."""
        if self.unmonitored:
            return _error(403, self.unmonitored)
        labels = dict(term.split(" = ", 1) for term in call.query["filter"].split(" AND "))
        count = self.counted.get(labels["metric.labels.quota_metric"].strip('"').removeprefix("metric/"))
        if count is None:
            return Answer(json={})
        used, age = count
        # Reckoned from the request, so that no wait for the answer makes it older or younger.
        at = (datetime.fromisoformat(call.query["interval.endTime"]) - timedelta(seconds=age)).isoformat()
        return Answer(json={"timeSeries": [{"points": [point(used, at)]}]})


def point(used: int, at: str) -> dict[str, Any]:
    """A gauge's point, as Monitoring tells it."""
    return {"interval": {"startTime": at, "endTime": at}, "value": {"int64Value": str(used)}}


def _error(status: int, message: str) -> Answer:
    return Answer(status, {"error": {"code": status, "message": message, "status": "TEST"}})


@contextmanager
def running(monkeypatch: "pytest.MonkeyPatch") -> "Iterator[FakeRun]":
    """The fake, and an environment that leads to it."""
    with serving() as server:
        fake = FakeRun(server)
        server.routes[:] = [fake.route]
        monkeypatch.setenv("GOOGLE_CLOUD_RUN_V2_CUSTOM_ENDPOINT", f"{server.url}/run/v2/")
        monkeypatch.setenv("GOOGLE_CLOUD_QUOTAS_CUSTOM_ENDPOINT", f"{server.url}/cloudquotas/v1/")
        monkeypatch.setenv("GOOGLE_MONITORING_CUSTOM_ENDPOINT", f"{server.url}/monitoring/")
        monkeypatch.setenv("GOOGLE_TPU_V2ALPHA1_CUSTOM_ENDPOINT", f"{server.url}/tpu/v2alpha1/")
        monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", f"{server.url}/compute/v1/")
        monkeypatch.setenv("GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT", f"{server.url}/crm/v1/")
        monkeypatch.setenv("GOOGLE_STORAGE_CUSTOM_ENDPOINT", f"{server.url}/storage/v1/")
        monkeypatch.setenv("GOOGLE_DNS_CUSTOM_ENDPOINT", f"{server.url}/dns/v1/")
        monkeypatch.setenv("GOOGLE_CERTIFICATE_MANAGER_CUSTOM_ENDPOINT", f"{server.url}/certificatemanager/v1/")
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.planted-access-token")
        yield fake
