"""Metrics of a deployed server at the wire: no instance is started unasked, and no identity reaches a message."""

import json
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.metrics.metrics import MetricsArguments, metrics
from bezel.operations.metrics.result import Metrics
from bezel.operations.serving.server import ServerError
from bezel.operations.vllm_metrics import sample as names
from tests.support.operations.deployed import SERVICE, Deployed, live_service, service_resource, state_of
from tests.support.rest.fake_google import ACCESS_TOKEN, Answer, Call, key_file, token_route

TEXT = (Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm" / "metrics.txt").read_text()


class Vllm:
    """A server that answers with these texts in turn, the last one again and again."""

    def __init__(self, cloud: Deployed, folder: Path, *texts: str, minimum: int = 1, points: Any = None) -> None:
        self.calls: list[Call] = []
        self.texts = list(texts) or [TEXT]
        self.points = points
        scaling = {"minInstanceCount": minimum, "maxInstanceCount": 1}
        cloud.keep("dev", state_of(service_resource(), url=cloud.server.url, model="gemma"))
        cloud.live[SERVICE] = live_service(scaling=scaling)
        environ: Any = cloud.context.environ
        environ["GOOGLE_APPLICATION_CREDENTIALS"] = str(key_file(folder, cloud.server))
        del environ["GOOGLE_OAUTH_ACCESS_TOKEN"]
        cloud.server.routes[:0] = [token_route(), self.answer]

    def answer(self, call: Call) -> Answer | None:
        if call.path.endswith("/timeSeries"):
            self.calls.append(call)
            return Answer(json=self.points) if isinstance(self.points, dict) else self.points
        if call.path != "/metrics":
            return None
        self.calls.append(call)
        return Answer(text=self.texts.pop(0) if len(self.texts) > 1 else self.texts[0])

    @property
    def paths(self) -> list[str]:
        return [call.path for call in self.calls]


def counts_of(value: int, moment: str = "2026-09-21T14:12:00Z") -> dict[str, Any]:
    return {"timeSeries": [{"points": [{"interval": {"endTime": moment}, "value": {"int64Value": str(value)}}]}]}


def read(cloud: Deployed, **arguments: Any) -> Metrics:
    return metrics(cloud.context, MetricsArguments(stack="dev", **arguments))


def value(report: Metrics, name: str) -> float | None:
    return next(figure.value for figure in report.figures if figure.name == name)


def test_a_server_is_read_with_the_caller_s_identity_and_explained(cloud: Deployed, tmp_path: Path) -> None:
    vllm = Vllm(cloud, tmp_path)
    report = read(cloud)
    assert (report.is_read, report.processes_seen, report.engines, report.exit_code) == (True, 1, 1, 0)
    assert value(report, "ttft") == pytest.approx(16.19 / 13, rel=1e-3)
    asked = [call for call in vllm.calls if call.path == "/metrics"]
    assert all(call.headers["authorization"].startswith("Bearer eyJ") for call in asked)
    assert len({call.headers["connection"] for call in asked} - {"close"}) == 0  # a connection each
    text = report.text()
    assert "TTFT" in text
    assert "engine length" in text
    assert "planted" not in text + report.model_dump_json()


@pytest.mark.slow
def test_figures_are_of_the_interval_that_was_asked_for(cloud: Deployed, tmp_path: Path) -> None:
    later = TEXT.replace('generation_tokens_total{engine="0",model_name="tiny-gemma4"} 64.0',
                         'generation_tokens_total{engine="0",model_name="tiny-gemma4"} 164.0')  # fmt: skip
    Vllm(cloud, tmp_path, TEXT, TEXT, TEXT, later)
    report = read(cloud, seconds=0.05)
    assert report.interval_seconds
    assert value(report, "generation_throughput") == pytest.approx(100 / report.interval_seconds, rel=0.01)
    assert report.notes == ()


@pytest.mark.slow
def test_two_instances_behind_one_address_are_reported_and_not_subtracted(cloud: Deployed, tmp_path: Path) -> None:
    other = TEXT.replace("process_start_time_seconds 1.79521977258e+09", "process_start_time_seconds 1.6e+09")
    Vllm(cloud, tmp_path, TEXT, TEXT, TEXT, other)
    report = read(cloud, seconds=0.01)
    assert report.processes_seen == 2
    assert (report.interval_seconds, value(report, "generation_throughput")) == (None, None)
    assert "2 server processes answered" in report.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "points", [counts_of(0), {}, Answer(403, {"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}})]
)
def test_a_service_that_is_not_known_to_run_is_not_started(cloud: Deployed, tmp_path: Path, points: Any) -> None:
    vllm = Vllm(cloud, tmp_path, minimum=0, points=points)
    report = read(cloud)
    assert "/metrics" not in vllm.paths
    assert (report.is_read, report.figures, report.exit_code) == (False, (), 1)
    assert "--wake" in report.text()
    assert read(cloud, wake=True).is_read


@pytest.mark.slow
def test_a_running_instance_is_asked_though_the_service_may_scale_to_zero(cloud: Deployed, tmp_path: Path) -> None:
    vllm = Vllm(cloud, tmp_path, minimum=0, points=counts_of(2))
    report = read(cloud)
    assert (report.is_read, report.instances) == (True, 2)
    query = vllm.calls[0].query
    assert '"run.googleapis.com/container/instance_count"' in query["filter"]
    assert query["interval.endTime"] == "2026-09-21T14:13:20Z"


def test_only_the_newest_sample_of_the_count_is_taken(cloud: Deployed, tmp_path: Path) -> None:
    both = counts_of(0)["timeSeries"] + counts_of(3, "2026-09-21T14:10:00Z")["timeSeries"]
    Vllm(cloud, tmp_path, minimum=0, points={"timeSeries": both})
    assert read(cloud).instances == 0


def test_another_server_than_vllm_is_an_error(cloud: Deployed, tmp_path: Path) -> None:
    Vllm(cloud, tmp_path, "go_goroutines 7\n")
    with pytest.raises(ServerError, match="/metrics"):
        read(cloud)


@pytest.mark.slow
def test_an_endless_answer_is_cut(cloud: Deployed, tmp_path: Path) -> None:
    Vllm(cloud, tmp_path, TEXT + f"{names.RUNNING}_x 1\n" * 250_000)
    assert read(cloud).is_read


def test_a_refusal_is_an_error_with_a_repair_and_without_a_token(cloud: Deployed, tmp_path: Path) -> None:
    Vllm(cloud, tmp_path)
    cloud.server.routes.insert(0, lambda call: Answer(403, text="<html>Forbidden hf_plantedplantedplanted</html>")
                               if call.path == "/metrics" else None)  # fmt: skip
    with pytest.raises(ServerError, match=r"roles/run\.invoker") as refused:
        read(cloud)
    assert "planted" not in json.dumps(refused.value.as_json())
    assert ACCESS_TOKEN not in str(refused.value)
