"""Metrics of log entries on localcloud: what they count by label, from when on, and what is refused."""

import pytest

from localcloud_support.client import PARENT

METRICS, WRITE = f"/logging/v2/{PARENT}/metrics", "/logging/v2/entries:write"
QUERY = f"/monitoring/v1/{PARENT}/location/global/prometheus/api/v1/query"
DOOR = {"type": "cloud_run_revision", "labels": {"service_name": "chat-door", "location": "us-east4"}}
COUNTER = {
    "name": "door-requests",
    "filter": 'resource.labels.service_name="chat-door" AND jsonPayload.team:*',
    "metricDescriptor": {
        "metricKind": "DELTA",
        "valueType": "INT64",
        "labels": [{"key": "team"}, {"key": "status"}],
    },
    "labelExtractors": {"team": "EXTRACT(jsonPayload.team)", "status": "EXTRACT(jsonPayload.status)"},
}
TOKENS = {
    "name": "door-tokens",
    "filter": COUNTER["filter"],
    "metricDescriptor": {"metricKind": "DELTA", "valueType": "DISTRIBUTION", "labels": [{"key": "team"}]},
    "labelExtractors": {"team": "EXTRACT(jsonPayload.team)"},
    "valueExtractor": "EXTRACT(jsonPayload.tokens)",
    "bucketOptions": {"exponentialBuckets": {"numFiniteBuckets": 3, "growthFactor": 10, "scale": 1}},
}


def write(project, *payloads):
    log = {"logName": f"{PARENT}/logs/out", "resource": DOOR}
    project.ok("POST", WRITE, {**log, "entries": [{"jsonPayload": each} for each in payloads]})


def line(team, status=200, tokens=5):
    return {"team": team, "status": status, "tokens": tokens}


def values(project, query):
    """Labels -> value of each element, a minute from now."""
    project.passes(60)
    answer = project.ok("POST", QUERY, {"query": query, "time": str(project.clock.now())})
    result = answer["data"]["result"]
    return {tuple(sorted(each["metric"].values())): float(each["value"][1]) for each in result}


def test_entries_are_counted_by_label_from_the_metrics_making_on(project):
    write(project, line("search"))
    project.passes(1)
    project.ok("POST", METRICS, COUNTER)
    project.ok("POST", METRICS, TOKENS)
    project.passes(1)
    write(project, line("search"), line("search", 503, 7), line("batch", 200, 500), {"path": "/", "status": 401})
    requests = "logging_googleapis_com:user_door_requests"
    assert values(project, f"sum by (team, status) (increase({requests}[5m]))").keys() == {
        ("200", "search"),
        ("503", "search"),
        ("200", "batch"),
    }
    assert values(project, f'sum by (team) ({requests}{{service_name="chat-door"}})') == {("search",): 2, ("batch",): 1}
    tokens = "logging_googleapis_com:user_door_tokens"
    assert values(project, f"sum by (team) ({tokens}_sum)") == {("search",): 12, ("batch",): 500}
    assert values(project, f'sum by (team) ({tokens}_bucket{{le="10"}})') == {("search",): 2, ("batch",): 0}
    assert values(project, f'{requests}{{service_name="another"}}') == {}


def test_a_changed_metric_counts_on_and_a_deleted_one_is_gone(project):
    project.ok("POST", METRICS, COUNTER)
    project.passes(1)
    write(project, line("search"))
    name = "logging_googleapis_com:user_door_requests"
    assert values(project, f"sum({name})") == {(): 1}
    project.ok("PUT", f"{METRICS}/door-requests", COUNTER | {"filter": "jsonPayload.status>=500"})
    write(project, line("search"), line("search", 502))
    assert values(project, f"sum({name})") == {(): 2}
    project.ok("PUT", f"{METRICS}/door-requests", COUNTER | {"disabled": True})
    write(project, line("search"))
    assert values(project, f"sum({name})") == {(): 2}
    project.ok("DELETE", f"{METRICS}/door-requests")
    assert values(project, f"sum({name})") == {}


def test_a_put_makes_a_metric_that_is_not_there_and_keeps_its_type(project):
    made = project.ok("PUT", f"{METRICS}/door-requests", {key: COUNTER[key] for key in ("filter",)})
    assert (made["name"], made["metricDescriptor"]["valueType"]) == ("door-requests", "INT64")
    assert "cannot be changed" in str(
        project.refusal(400, "PUT", f"{METRICS}/door-requests", {**TOKENS, "name": "door-requests"})
    )
    assert "not that of the resource" in str(project.refusal(400, "PUT", f"{METRICS}/door-requests", TOKENS))


WRONG = {
    "no filter": ({"filter": ""}, "metric.filter"),
    "a filter that is none": ({"filter": "a ="}, "filter"),
    "a label without an extractor": ({"labelExtractors": {"team": "EXTRACT(jsonPayload.team)"}}, "one extractor"),
    "an extractor that is none": (
        {"labelExtractors": {"team": "jsonPayload", "status": "EXTRACT(a)"}},
        "EXTRACT(field)",
    ),
    "a value of a counter": ({"valueExtractor": "EXTRACT(a)"}, "DISTRIBUTION only"),
    "a gauge": ({"metricDescriptor": {"metricKind": "GAUGE", "valueType": "INT64"}}, "DELTA with INT64"),
    "a name with a space": ({"name": "a b"}, "metric.name"),
}
UNSERVED = {
    "a slash": ({"name": "a/b"}, "slash"),
    "a regular expression": (
        {"labelExtractors": dict.fromkeys(("team", "status"), 'REGEXP_EXTRACT(a, "(b)")')},
        "REGEXP",
    ),
    "a bucket of logs": ({"bucketName": f"{PARENT}/locations/global/buckets/x"}, "bucketName"),
}


def test_a_daemon_that_starts_counts_what_the_log_still_has(project):
    project.ok("POST", METRICS, COUNTER)
    project.passes(1)
    write(project, line("search"), line("search"))
    project.restart()
    write(project, line("search"))
    assert values(project, "sum(logging_googleapis_com:user_door_requests)") == {(): 3}


@pytest.mark.parametrize("name", [*WRONG, *UNSERVED])
def test_a_metric_that_cannot_be_is_refused_with_its_reason(project, name):
    change, reason = {**WRONG, **UNSERVED}[name]
    assert reason in str(project.refusal(400, "POST", METRICS, COUNTER | change))
    assert project.ok("GET", METRICS) == {}
