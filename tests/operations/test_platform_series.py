"""Cloud Monitoring's figures of a service over a load: on the load's time, unknown with a reason where it has none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from bezel.leases.clock import PlatformClock, rfc3339
from bezel.operations.bench.platform_series import platform_series
from bezel.operations.context import Context
from bezel_bench.commands.render.platform_row import platform_row
from bezel_bench.result.document import Cell
from tests.support.operations.deployed import NOW, Deployed, service_resource, state_of
from tests.support.rest.fake_google import Answer, Call

if TYPE_CHECKING:
    from bezel_bench.result.platform_series import PlatformSeries

BEGAN = NOW - 300.0
URL = "https://llm.example"
Points = dict[float, Any]


def load(seconds: float = 300.0, name: str = "run") -> Cell:
    return Cell(
        id=name, context_tokens=8, users=1, output_tokens=8, pattern="closed", prompts="unique", state="ok",
        started_at=datetime.fromtimestamp(NOW - seconds, UTC), seconds=seconds, requests=1,
    )  # fmt: skip


class Monitored:
    """A deployed service, its Cloud Monitoring, and a clock that a wait moves on."""

    def __init__(self, cloud: Deployed) -> None:
        self.cloud, self.now, self.messages = cloud, NOW, list[str]()
        self.series: dict[str, list[dict[str, Any]]] = {}
        self.refusals: dict[str, Answer] = {}
        self.interrupts = False
        self.reads = 0
        cloud.server.routes.insert(0, self.answer)

    def add(self, metric: str, points: Points, *, readable_at: float = 0.0, **more: Any) -> None:
        """Add a series: seconds from the load's start -> (number, mean) of a distribution, or a number."""
        rows = [
            {"interval": {"endTime": rfc3339(BEGAN + at)}, "value": value_of(value)}
            for at, value in sorted(points.items(), reverse=True)
        ]
        self.series.setdefault(metric, []).append({"points": rows, "readable_at": readable_at, **more})

    def answer(self, call: Call) -> Answer | None:
        if not call.path.endswith("/timeSeries"):
            return None
        self.reads += 1
        metric = call.query["filter"].split('"')[1].rpartition("/container/")[2]
        begin, end = call.query["interval.startTime"], call.query["interval.endTime"]
        series = [
            one | {"points": [point for point in one["points"] if begin <= point["interval"]["endTime"] <= end]}
            for one in self.series.get(metric, ())
            if one["readable_at"] <= self.now
        ]
        return self.refusals.get(metric) or Answer(json={"timeSeries": series} if series else {})

    def pause(self, seconds: float) -> None:
        if self.interrupts:
            raise KeyboardInterrupt
        self.now += seconds

    def read_all(self, *cells: Cell) -> dict[str, list[PlatformSeries]]:
        clock = PlatformClock(now=lambda: self.now, pause=self.pause)
        with Context(self.cloud.folder, self.cloud.context.environ, clock=clock, show=self.messages.append) as context:
            return platform_series(context, context.deployment("dev"), URL, cells, self.messages.append)

    def read(self, cell: Cell | None = None) -> dict[str, PlatformSeries]:
        read = self.read_all(cell or load())
        return {one.of: one for one in read["run"]} if read else {}


def value_of(value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"int64Value": str(value)}
    count, mean = value
    return {"distributionValue": {"count": str(count), **({"mean": mean} if mean else {})}}


@pytest.fixture
def monitoring(cloud: Deployed) -> Monitored:
    cloud.keep("dev", state_of(service_resource(), url=URL))
    return Monitored(cloud)


def test_samples_stand_on_the_load_s_time_and_are_awaited(monitoring: Monitored) -> None:
    monitoring.add("gpu/utilizations", {60: (1, 0.5), 120: (1, 0.0)}, readable_at=NOW + 100)
    monitoring.add("gpu/utilizations", {60: (3, 0.9)}, readable_at=NOW + 100)
    monitoring.add("gpu/memory_utilizations", {60: (1, 91.0)}, unit="%")
    monitoring.add("instance_count", {60: 1, 120: 0})
    monitoring.add("instance_count", {61: 3, 80: 5, 120: 1})
    read = monitoring.read()
    assert (read["gpu"].at_seconds, read["gpu"].values) == ([60, 120], [pytest.approx(0.8), 0.0]), "weighted by GPUs"
    assert read["gpu_memory"].values == [pytest.approx(0.91)]
    assert read["instances"].values == [4, 6, 1]
    assert read["gpu"].metric == "run.googleapis.com/container/gpu/utilizations"
    assert monitoring.now == NOW + 120
    assert "waits for Cloud Monitoring's samples of the load, 2 min at most" in monitoring.messages[0]
    row = platform_row(list(read.values()))
    assert row == (
        "by Cloud Monitoring: GPU 40% (0% to 80%, 2 samples); GPU memory 91% (1 sample); "
        "instances 3.667 (1 to 6, 3 samples)"
    )


def test_without_access_nothing_is_awaited_and_the_reason_is_said_once(monitoring: Monitored) -> None:
    refused = Answer(403, json={"error": {"code": 403, "message": "denied", "status": "PERMISSION_DENIED"}})
    for metric in ("gpu/utilizations", "gpu/memory_utilizations", "instance_count"):
        monitoring.refusals[metric] = refused
    read = monitoring.read()
    assert (monitoring.now, monitoring.messages) == (NOW, [])
    row = platform_row(list(read.values()))
    assert row.startswith("by Cloud Monitoring: GPU and GPU memory and instances unknown (")
    assert row.count("denied") == 1
    del monitoring.refusals["instance_count"]
    monitoring.add("instance_count", {60: 1})
    read = monitoring.read()
    assert (read["instances"].values, read["gpu"].values) == ([1], [])
    assert monitoring.now == NOW + 120


def test_a_short_load_asks_nothing_and_an_interrupt_ends_the_wait(monitoring: Monitored) -> None:
    monitoring.add("instance_count", {60: 2})
    short = monitoring.read(load(12.0))
    assert {one.why for one in short.values()} == {"a sample is taken every 60 s, and the load took 12.0 s"}
    assert monitoring.now == NOW
    monitoring.interrupts = True
    read = monitoring.read()
    assert (read["instances"].values, monitoring.now) == ([2], NOW)
    assert read["gpu"].why == "no sample is from the 300 s of the load"


def test_several_loads_are_awaited_once_and_a_refusal_is_asked_once(monitoring: Monitored) -> None:
    loads = load(300.0, "a"), load(200.0, "b"), load(12.0, "c")
    monitoring.add("instance_count", {60: 2, 180: 4})
    read = monitoring.read_all(*loads)
    values = {name: [one.values for one in series if one.of == "instances"] for name, series in read.items()}
    assert values == {"a": [[2, 4]], "b": [[4]], "c": [[]]}
    assert monitoring.now == NOW + 120
    assert monitoring.messages[-1] == "reads Cloud Monitoring's samples: load 2 of 2"
    refused = Answer(403, json={"error": {"code": 403, "message": "denied", "status": "PERMISSION_DENIED"}})
    monitoring.refusals |= dict.fromkeys(("gpu/utilizations", "gpu/memory_utilizations", "instance_count"), refused)
    before = monitoring.reads
    read = monitoring.read_all(*loads)
    assert all("denied" in one.why for name in "ab" for one in read[name])
    assert (monitoring.reads - before, monitoring.now) == (3, NOW + 120)


def test_a_gateway_of_leased_machines_has_no_series(monitoring: Monitored) -> None:
    template = {"containers": [{}], "nodeSelector": {}}
    monitoring.cloud.keep("dev", state_of(service_resource(template=template), url=URL))
    assert monitoring.read() == {}
