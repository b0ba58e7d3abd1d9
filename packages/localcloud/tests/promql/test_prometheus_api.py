"""Prometheus's HTTP API of a project: its parameters in every form, its answers, and its refusals."""

import json
from urllib.parse import quote

import pytest

from bezel_localcloud.services.monitoring.prometheus_series import Buckets, ScrapedSample
from bezel_localcloud.services.monitoring.promql.answers import number_text
from localcloud_support.client import PARENT
from localcloud_support.in_process import Project

ROOT = f"/monitoring/v1/{PARENT}/location/global/prometheus/api/v1"
FORM = {"content-type": "application/x-www-form-urlencoded"}
NOW = 1_800_000_000.0
TARGET = {"project_id": "bezel-local", "location": "us-east4", "cluster": "__run__", "namespace": "llm"}
TARGET |= {"job": "run-gmp-sidecar", "instance": "a1:8080"}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    new_project = Project(tmp_path_factory.mktemp("cloud"))
    for number in range(11):
        samples = [
            ScrapedSample("vllm:tokens_total", "counter", {"model_name": "m"}, 30.0 * number),
            ScrapedSample("vllm:running", "gauge", {"model_name": "m"}, number / 3),
            ScrapedSample("vllm:ttft", "histogram", {"model_name": "m"}, Buckets((0.1, 1.0), (number,) * 3, number)),
        ]
        new_project.cloud.prometheus_series.write(NOW - 300 + 30 * number, TARGET, samples, since=NOW - 301)
    yield new_project
    new_project.close()


def data(answer):
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "success"
    return answer.json()["data"]


def test_a_query_is_read_from_a_query_a_form_and_json(project):
    text = "sum by (model_name) (rate(vllm:tokens_total[2m]))"
    expected = {"resultType": "vector", "result": [{"metric": {"model_name": "m"}, "value": [1800000000, "1"]}]}
    path = f"{ROOT}/query"
    form = f"query={quote(text)}&time={NOW}&timeout=5s"
    answers = [
        project.raw("GET", f"{path}?{form}"),
        project.raw("POST", path, form.encode(), FORM),
        project.raw("POST", path, json.dumps({"query": text, "time": "2027-01-15T08:00:00Z"}).encode()),
        project.raw("POST", path, json.dumps({"query": text}).encode()),  # now
    ]
    assert [data(answer) for answer in answers] == [expected] * 4
    project.call("POST", path, {"query": text, "time": str(NOW)})  # by the discovery document


def test_a_range_has_a_value_at_each_step(project):
    query = {"start": NOW - 60, "end": NOW + 1, "step": "30s", "query": "vllm:running * 3"}
    (series,) = data(project.call("GET", f"{ROOT}/query_range", **query))["result"]
    assert series["metric"] == TARGET | {"model_name": "m"}
    assert series["values"] == [[1799999940, "8"], [1799999970, "9"], [1800000000, "10"]]
    query |= {"query": "histogram_quantile(0.5, rate(vllm:ttft_bucket[1m]))", "step": "60"}
    (series,) = data(project.call("GET", f"{ROOT}/query_range", **query))["result"]
    assert {value for _, value in series["values"]} == {"0.05"}
    assert data(project.call("GET", f"{ROOT}/query_range", **query | {"query": "nothing"}))["result"] == []


def test_elements_are_in_the_order_that_the_query_sorts_them_by(project):
    series = "vllm:ttft_count or on(__name__) vllm:tokens_total or on(__name__) vllm:running"
    for function, order in (("sort", [10 / 3, 10.0, 300.0]), ("sort_desc", [300.0, 10.0, 10 / 3])):
        query = {"query": f"{function}({series})", "time": NOW}
        result = data(project.call("GET", f"{ROOT}/query", **query))["result"]
        assert [float(one["value"][1]) for one in result] == order


def test_series_labels_and_kinds_are_listed(project):
    names = data(project.call("GET", f"{ROOT}/label/__name__/values"))
    assert names == ["vllm:running", "vllm:tokens_total", "vllm:ttft_bucket", "vllm:ttft_count", "vllm:ttft_sum"]
    assert data(project.call("GET", f"{ROOT}/label/le/values", match="vllm:ttft_bucket")) == [
        "+Inf",
        "0.1",
        "1",
    ]
    assert data(project.call("GET", f"{ROOT}/labels", **{"match[]": "vllm:running"})) == sorted(
        ["__name__", "model_name", *TARGET]
    )
    selectors = b"match[]=vllm:running&match[]=vllm:ttft_bucket{le='0.1'}"
    series = data(project.raw("POST", f"{ROOT}/series", selectors, FORM))
    assert [one["__name__"] for one in series] == ["vllm:running", "vllm:ttft_bucket"]
    later = {"match[]": "vllm:running", "start": str(NOW + 1)}
    assert data(project.call("GET", f"{ROOT}/series", **later)) == []
    kinds = data(project.call("GET", f"{ROOT}/metadata"))
    assert {name: one["type"] for name, (one,) in kinds.items()} == {
        "vllm:running": "gauge",
        "vllm:tokens_total": "counter",
        "vllm:ttft": "histogram",
    }
    assert list(data(project.call("GET", f"{ROOT}/metadata", limit="1"))) == ["vllm:running"]


@pytest.mark.parametrize(
    ("path", "query", "status", "reason"),
    [
        ("query", {"query": "sum(rate(x[5m])"}, 400, 'invalid parameter "query": 1:16: parse error: unexpected end of'),
        ("query", {}, 400, "no expression found in input"),
        ("query", {"query": "rate(x)"}, 400, "expected type range vector in call to function"),
        ("query", {"query": "foo(x)"}, 400, 'unknown function with name "foo"'),
        ("query", {"query": "x", "time": "soon"}, 400, 'invalid parameter "time": cannot parse "soon"'),
        ("query", {"query": "x{a=~'('}"}, 422, "error parsing regexp"),
        ("query", {"query": "-" * 150 + "1"}, 400, "at most 50 parts within each other"),
        ("query", {"query": "1" + "+1" * 120}, 400, "at most 50 parts within each other"),
        ("query", {"query": "x" * 10_001}, 400, "at most 10000 characters"),
        ("query", {"query": "max_over_time(vector(1)[1y:1s])"}, 422, "load too many samples"),
        ("query_range", {"query": "x[5m]", "start": "0", "end": "9", "step": "3"}, 400, "must be Scalar or instant"),
        ("query_range", {"query": "x", "start": "9", "end": "0", "step": "3"}, 400, "must not be before start time"),
        (
            "query_range",
            {"query": "x", "start": "0", "end": "9", "step": "0"},
            400,
            "zero or negative query resolution",
        ),
        ("query_range", {"query": "x", "start": "0", "end": "99999", "step": "1"}, 400, "maximum resolution of 11,000"),
        ("query_range", {"query": "x", "end": "9", "step": "1"}, 400, 'invalid parameter "start"'),
        ("series", {}, 400, "no match[] parameter provided"),
        ("series", {"match[]": "sum(x)"}, 400, "expected a series selector"),
        ("query", {"query": "label_replace(x, 'a', 'b', 'c', 'd')"}, 400, "does not serve the function label_replace"),
        ("query", {"query": "run_googleapis_com:x > 1"}, 400, "does not serve the metric run_googleapis_com:x"),
        ("query", {"query": "x @ 5"}, 400, "does not serve the modifier @"),
        ("query", {"query": "{__name__=~'vllm.*'}"}, 400, "does not serve a metric that is not named exactly"),
    ],
)
def test_a_wrong_query_is_refused_with_its_reason(project, path, query, status, reason):
    answer = project.raw("GET", f"{ROOT}/{path}?{'&'.join(f'{key}={quote(value)}' for key, value in query.items())}")
    assert answer.status_code == status, answer.text
    body = answer.json()
    kinds = {400: {"bad_data", "notServedByLocalcloud"}, 422: {"execution"}}
    assert body["status"] == "error"
    assert body["errorType"] in kinds[status]
    assert reason in body["error"]
    assert ("does not serve" in reason) is (body["errorType"] == "notServedByLocalcloud")


def test_platform_metrics_are_queried_by_their_names_in_promql(tmp_path):
    project = Project(tmp_path)
    revision = f"{PARENT}/locations/us-east4/services/llm/revisions/llm-1"
    for _ in range(3):
        for status in (200, 200, 503):
            project.cloud.service_use.add_request(revision, status)
        project.passes(60)
        project.cloud.service_use.sample()
    project.passes(130)  # until it can be read
    requests = 'run_googleapis_com:request_count{monitored_resource="cloud_run_revision"}'
    query = f"sum by (response_code_class) (increase({requests}[10m]))"
    series = data(project.call("GET", f"{ROOT}/query", query=query, time=project.clock.time - 130))["result"]
    project.close()
    assert {one["metric"]["response_code_class"]: float(one["value"][1]) for one in series} == {"2xx": 6.0, "5xx": 3.0}


def test_numbers_are_written_without_an_exponent():
    texts = [
        number_text(value) for value in (0.0, -0.0, 1e21, 2.5e-7, 1 / 3, float("inf"), -float("inf"), float("nan"))
    ]
    assert texts == ["0", "-0", "1" + "0" * 21, "0.00000025", "0.3333333333333333", "+Inf", "-Inf", "NaN"]


def test_another_location_and_a_caller_without_a_token_are_refused(project):
    elsewhere = ROOT.replace("global", "us-east4")
    assert project.raw("GET", f"{elsewhere}/query?query=1").status_code == 403
    assert project.raw("GET", f"{ROOT}/query?query=1", token=False).status_code == 401
    assert project.raw("POST", f"{ROOT}/query_exemplars", b"{}").status_code == 400
