"""Managed Service for Prometheus at the wire: scraped samples, and the queries by which the series of a stack are read.

Answers have the form of Prometheus' documentation of its HTTP API. A query is one of `last_over_time`,
`max_over_time` and `min_over_time` of a selector, or the selector alone; another one is refused as Prometheus refuses.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from bezel.operations.vllm_metrics.series import COLLECTOR
from bezel_bench.server.counters import series
from bezel_catalog.vllm.kept_series import keep_expression
from tests.support.operations.deployed import service_resource
from tests.support.rest.fake_google import Answer, Call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PATH = re.compile(r"/monitoring/v1/projects/acme/location/global/prometheus/api/v1/(query|query_range)")
_QUERY = re.compile(
    r"(?:(?P<over>last|max|min)_over_time\()?(?P<name>[\w:]+)\{(?P<matchers>[^}]*)\}\[(?P<range>\d+)s\]\)?"
)
_MATCHER = re.compile(r'(\w+)=~"([^"]*)"')
_OVER: dict[str, Callable[[Sequence[float]], float]] = {"last": lambda values: values[-1], "max": max, "min": min}
_KEPT = re.compile(keep_expression())
Labels = tuple[tuple[str, str], ...]


def with_collector() -> dict[str, Any]:
    """The state's entry of a service with a collector beside its server."""
    resource = service_resource()
    limits = {"cpu": "1", "memory": "1Gi"}
    collector = {"image": f"us-docker.pkg.dev/ops/{COLLECTOR}:1.9.2", "resources": {"limits": limits}}
    resource["inputs"]["template"]["containers"].append(collector)
    return resource


class Prometheus:
    """The series of a project.

    Attributes:
        calls: Every request.
        refusal: What every query is answered with; None answers it.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.refusal: Answer | None = None
        self._samples: defaultdict[str, defaultdict[Labels, list[tuple[float, float]]]]
        self._samples = defaultdict(lambda: defaultdict(list))

    def scrape(self, text: str, at: float, instance: str = "a1", **labels: str) -> None:
        """Add what the collector keeps of a `/metrics` text."""
        target = {
            "project_id": "acme",
            "location": "us-east4",
            "cluster": "__run__",
            "namespace": "llm",
            "job": "run-gmp-sidecar",
            "instance": f"{instance}:8000",
            "instanceId": instance,
            **labels,
        }
        for name, labels_of_line, value in series(text):
            if _KEPT.fullmatch(name):
                self._samples[name][tuple(sorted({**labels_of_line, **target}.items()))].append((at, value))

    def answer(self, call: Call) -> Answer | None:
        """Answer a query."""
        path = _PATH.fullmatch(call.path)
        if path is None:
            return None
        self.calls.append(call)
        if self.refusal is not None:
            return self.refusal
        query = _QUERY.fullmatch(call.query["query"])
        if query is None:
            error = {"status": "error", "errorType": "bad_data", "error": f"not served: {call.query['query']}"}
            return Answer(400, json=error)
        if path[1] == "query":
            times = [float(call.query["time"])]
        else:
            start, end = float(call.query["start"]), float(call.query["end"])
            step = int(call.query["step"].removesuffix("s"))
            times = [start + step * number for number in range(int((end - start) // step) + 1)]
        result = list(self._result(query, times, is_range=path[1] == "query_range"))
        kind = "matrix" if path[1] == "query_range" or query["over"] is None else "vector"
        return Answer(json={"status": "success", "data": {"resultType": kind, "result": result}})

    def _result(self, query: re.Match[str], times: Sequence[float], *, is_range: bool) -> Any:
        matchers = [(name, re.compile(pattern)) for name, pattern in _MATCHER.findall(query["matchers"])]
        for key, samples in self._samples.get(query["name"], {}).items():
            labels = dict(key)
            if not all(pattern.fullmatch(labels.get(name, "")) for name, pattern in matchers):
                continue
            metric = {"__name__": query["name"], **labels}
            values = []
            for time in times:
                inside = [(at, value) for at, value in samples if time - int(query["range"]) < at <= time]
                if inside and query["over"] is None:
                    yield {"metric": metric, "values": [[at, f"{value}"] for at, value in inside]}
                elif inside:
                    values.append([time, f"{_OVER[query['over']]([value for _, value in inside])}"])
            if values:
                yield {"metric": metric, **({"values": values} if is_range else {"value": values[0]})}
