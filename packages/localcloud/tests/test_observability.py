"""Alert policies, dashboards and uptime checks on localcloud: stored as Google stores them, refused as it refuses."""

import pytest

from bezel_localcloud.http.enums import with_numbers
from bezel_localcloud.services.monitoring.prometheus_series import ScrapedSample
from localcloud_support.client import PARENT
from localcloud_support.in_process import SCOPE

POLICIES, CHECKS = (f"/monitoring/v3/{PARENT}/{kind}" for kind in ("alertPolicies", "uptimeCheckConfigs"))
DASHBOARDS = f"/monitoring/v1/{PARENT}/dashboards"
CHANNELS = f"/monitoring/v3/{PARENT}/notificationChannels"
MAIL = {"type": "email", "labels": {"email_address": "team@example.com"}}
LATENCY = 'metric.type="run.googleapis.com/request_latencies" AND resource.type="cloud_run_revision"'
P95 = {"alignmentPeriod": "60s", "perSeriesAligner": "ALIGN_PERCENTILE_95"}
THRESHOLD = {"filter": LATENCY, "comparison": "COMPARISON_GT", "thresholdValue": 5, "duration": "300s"}
CONDITION = {"displayName": "p95", "conditionThreshold": THRESHOLD | {"aggregations": [P95]}}
POLICY = {"displayName": "latency", "combiner": "OR", "conditions": [CONDITION]}
URL = {"type": "uptime_url", "labels": {"host": "llm.run.app"}}
CHECK = {"displayName": "health", "httpCheck": {"useSsl": True}, "monitoredResource": URL, "timeout": "10s"}


def policy(**threshold):
    return POLICY | {"conditions": [{"displayName": "x", "conditionThreshold": THRESHOLD | threshold}]}


def promql(query, **settings):
    return POLICY | {
        "conditions": [{"displayName": "x", "conditionPrometheusQueryLanguage": {"query": query} | settings}]
    }


@pytest.mark.slow
def test_a_query_names_metrics_of_the_platform_or_written_ones(project):
    metric = "run_googleapis_com:request_latencies_bucket"
    query = f"histogram_quantile(0.9, sum by (le) (rate({metric}[5m]))) > 3"
    project.ok("POST", POLICIES, promql(query, duration="60s", evaluationInterval="60s"))
    project.refusal(404, "POST", POLICIES, promql("vllm:x > 1"))
    late = {"duration": "300s", "evaluationInterval": "60s", "disableMetricValidation": True}
    made = project.ok("POST", POLICIES, promql('avg({"vllm:x"}) > 0.9', **late))
    assert made["conditions"][0]["conditionPrometheusQueryLanguage"] == {"query": 'avg({"vllm:x"}) > 0.9'} | late
    sample = ScrapedSample("vllm:x", "gauge", {}, 1.0)
    project.cloud.prometheus_series.write(project.clock.time, {"instance": "a"}, [sample])
    project.ok("POST", POLICIES, promql("vllm:x > 1"))


@pytest.mark.slow
def test_a_dashboard_with_a_query_that_is_none_is_refused(project):
    def dashboard(query):
        series = {"timeSeriesQuery": {"prometheusQuery": query}}
        return {"displayName": "x", "gridLayout": {"widgets": [{"xyChart": {"dataSets": [series]}}]}}

    refusal = project.refusal(400, "POST", DASHBOARDS, dashboard("sum(x"))["message"]
    place = "gridLayout.widgets[0].xyChart.dataSets[0].timeSeriesQuery.prometheusQuery"
    assert f"{place} had an invalid value: 1:6: parse error: unexpected end of input" in refusal
    assert (
        "1:16: parse error"
        in project.refusal(400, "POST", DASHBOARDS, dashboard("sum(rate(x[${__interval}])"))["message"]
    )
    for query in ("sum(rate(x[${__interval}]))", "sum(x{${cluster}})", "label_join(x, 'a', 'b')"):
        project.ok("POST", DASHBOARDS, dashboard(query))


@pytest.mark.slow
def test_a_changed_policy_keeps_the_names_of_its_conditions(project):
    """A policy is made, changed and deleted, and its conditions keep their names."""
    made = project.ok("POST", POLICIES, POLICY)
    assert made["enabled"]
    assert made["creationRecord"] == made["mutationRecord"]
    (condition,) = made["conditions"]
    assert condition == CONDITION | {"name": f"{made['name']}/conditions/1000"}
    path = f"/monitoring/v3/{made['name']}"
    project.clock.time += 60
    two = [condition | {"displayName": "renamed"}, CONDITION]
    changed = project.ok("PATCH", path, {"conditions": two, "displayName": "ignored"}, updateMask="conditions")
    assert [one["name"].rpartition("/")[2] for one in changed["conditions"]] == ["1000", "1001"]
    assert (changed["displayName"], changed["creationRecord"]) == ("latency", made["creationRecord"])
    assert changed["mutationRecord"] != made["mutationRecord"]
    assert project.ok("GET", POLICIES) == {"alertPolicies": [changed], "totalSize": 1}
    assert project.ok("DELETE", path) == {}
    project.refusal(404, "GET", path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "status", "word"),
    [
        (POLICY | {"conditions": []}, 400, "1 to 6 conditions"),
        (POLICY | {"conditions": [CONDITION] * 7}, 400, "1 to 6 conditions"),
        ({key: POLICY[key] for key in ("displayName", "conditions")}, 400, "combiner"),
        (POLICY | {"notificationChannels": [f"{PARENT}/notificationChannels/1"]}, 400, "does not exist"),
        (policy(filter='metric.type="run.googleapis.com/request_count"'), 400, 'restriction on "resource.type"'),
        (policy(filter='resource.type="cloud_run_revision"'), 400, "single metric type"),
        (policy(filter=LATENCY.replace("latencies", "latency")), 404, "Cannot find metric(s) that match type"),
        (policy(filter=LATENCY.replace("run.googleapis.com", "prometheus.googleapis.com")), 404, "Cannot find metric"),
        (
            policy(filter=LATENCY.replace("run.googleapis.com", "pubsub.googleapis.com")),
            400,
            "does not serve the metric",
        ),
        (policy(filter=LATENCY.replace("cloud_run_revision", "gce_instance")), 404, "Check the metric name and labels"),
        (policy(filter=LATENCY + ' AND metric.labels.nothing="x"'), 404, "Check the metric name and labels"),
        (
            policy(aggregations=[P95 | {"perSeriesAligner": "ALIGN_RATE"}]),
            400,
            "kind DELTA and value type DISTRIBUTION",
        ),
        (policy(aggregations=[P95 | {"alignmentPeriod": "30s"}]), 400, "at least 60 seconds"),
        (policy(duration="90s"), 400, "multiple of 60 seconds"),
        (policy(duration="0s", evaluationMissingData="EVALUATION_MISSING_DATA_ACTIVE"), 400, "non-zero duration"),
        (policy(comparison="COMPARISON_EQ"), 400, "COMPARISON_GT and COMPARISON_LT"),
        (POLICY | {"conditions": [{"displayName": "none"}]}, 400, "exactly one type of condition"),
        (POLICY | {"conditions": [{"conditionMatchedLog": {"filter": "x"}}] * 2}, 400, "only have a single condition"),
        (POLICY | {"conditions": [{"conditionPrometheusQueryLanguage": {"query": " "}}]}, 400, "must not be empty"),
        (promql("sum(rate(x[5m])"), 400, "query had an invalid value: 1:16: parse error"),
        (promql("up", evaluationInterval="45s"), 400, "must be a positive multiple of 30 seconds"),
        (promql("up", evaluationInterval="0s"), 400, "must be a positive multiple of 30 seconds"),
        (promql("up", alertRule="a b"), 400, "must be a label name of at most 2048 characters"),
        (promql("up"), 404, 'Cannot find metric(s) that match type = "up"'),
        (promql("pubsub_googleapis_com:x > 1"), 400, "does not serve the metric pubsub_googleapis_com:x"),
        (promql("label_replace(up, 'a', 'b', 'c', 'd')"), 400, "does not serve the function label_replace"),
        (POLICY | {"conditions": [{"conditionMonitoringQueryLanguage": {"query": "x"}}]}, 400, "QueryLanguage"),
        (POLICY | {"alertStrategy": {"notificationRateLimit": {"period": "60s"}}}, 400, "notification rate limit"),
        (POLICY | {"userLabels": {"A": "b"}}, 400, "userLabels"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_with_its_reason(project, wrong, status, word):
    assert word in project.refusal(status, "POST", POLICIES, wrong)["message"]
    assert project.ok("GET", POLICIES) == {}


@pytest.mark.slow
def test_a_channel_that_a_policy_notifies_is_deleted_by_force_only(project):
    channel = project.ok("POST", CHANNELS, MAIL)["name"]
    number = channel.replace(PARENT, "projects/123456789012")
    made = project.ok("POST", POLICIES, POLICY | {"notificationChannels": [number]})
    assert made["name"] in project.refusal(400, "DELETE", f"/monitoring/v3/{channel}")["message"]
    project.ok("DELETE", f"/monitoring/v3/{channel}", force="true")
    assert "notificationChannels" not in project.ok("GET", f"/monitoring/v3/{made['name']}")


def test_a_dashboard_has_one_layout_and_its_etag_refuses_an_older_change(project):
    body = {"displayName": "llm", "gridLayout": {"columns": "2", "widgets": [{"title": "n"}]}}
    made = project.ok("POST", DASHBOARDS, body)
    assert made["name"].startswith("projects/123456789012/dashboards/")
    path = f"/monitoring/v1/{made['name']}"
    changed = project.ok("PATCH", path, body | {"displayName": "other", "etag": made["etag"]})
    assert (changed["displayName"], changed["name"]) == ("other", made["name"])
    assert "Etag" in project.refusal(409, "PATCH", path, body | {"etag": made["etag"]})["message"]
    assert project.ok("POST", DASHBOARDS, body, validateOnly="true")["displayName"] == "llm"
    assert project.ok("GET", DASHBOARDS) == {"dashboards": [changed]}
    named = body | {"name": f"{PARENT}/dashboards/mine"}
    assert project.ok("POST", DASHBOARDS, named)["name"] == "projects/123456789012/dashboards/mine"
    project.refusal(409, "POST", DASHBOARDS, named)
    for wrong, word in [
        ({"gridLayout": {}}, "displayName"),
        (body | {"mosaicLayout": {}}, "one layout"),
        ({"displayName": "x", "mosaicLayout": {"tiles": [{"width": 1, "height": 1}]}}, "columns"),
        ({"displayName": "x", "mosaicLayout": {"columns": 4, "tiles": [{"xPos": 3, "width": 2, "height": 1}]}}, "fit"),
    ]:
        assert word in project.refusal(400, "POST", DASHBOARDS, wrong)["message"]
    assert project.ok("DELETE", path) == {}
    project.refusal(404, "DELETE", path)


def test_an_uptime_check_keeps_what_it_watches_and_never_shows_a_secret(project):
    secret = {"useSsl": True, "maskHeaders": True, "headers": {"X-Key": "s3cret"}}
    made = project.ok("POST", CHECKS, CHECK | {"httpCheck": secret})
    assert made["monitoredResource"]["labels"] == {"host": "llm.run.app", "project_id": "bezel-local"}
    assert (made["period"], made["checkerType"], made["httpCheck"]["port"]) == ("300s", "STATIC_IP_CHECKERS", 443)
    assert made["httpCheck"]["headers"] == {"X-Key": "******"}
    path = f"/monitoring/v3/{made['name']}"
    changed = project.ok(
        "PATCH", path, {"period": "60s", "httpCheck": made["httpCheck"]}, updateMask="period,httpCheck"
    )
    assert (changed["period"], changed["httpCheck"]) == ("60s", made["httpCheck"])
    assert project.cloud.store.get("uptimeCheckConfig", made["name"])["httpCheck"]["headers"] == {"X-Key": "s3cret"}
    other = {"monitoredResource": {"type": "uptime_url", "labels": {"host": "other"}}}
    assert "cannot be" in project.refusal(400, "PATCH", path, other, updateMask="monitoredResource")["message"]
    passed = 'metric.type="monitoring.googleapis.com/uptime_check/check_passed" AND resource.type="uptime_url"'
    passed += f' AND metric.labels.check_id="{made["name"].rpartition("/")[2]}"'
    fraction = {"alignmentPeriod": "300s", "perSeriesAligner": "ALIGN_FRACTION_TRUE"}
    user = project.ok("POST", POLICIES, policy(filter=passed, aggregations=[fraction]))["name"]
    assert user in project.refusal(400, "DELETE", path)["message"]
    project.ok("DELETE", f"/monitoring/v3/{user}")
    assert project.ok("DELETE", path) == {}
    assert project.ok("GET", CHECKS) == {}


@pytest.mark.parametrize(
    ("wrong", "status", "word"),
    [
        ({"period": "61s"}, 400, "60s, 300s, 600s or 900s"),
        ({"timeout": "61s"}, 400, "between 1 and 60"),
        ({"tcpCheck": {"port": 1}}, 400, "one of http_check and tcp_check"),
        ({"monitoredResource": {"type": "uptime_url", "labels": {}}}, 400, "host is required"),
        ({"monitoredResource": {"type": "gce_instance", "labels": {}}}, 400, "gce_instance"),
        ({"syntheticMonitor": {"cloudFunctionV2": {"name": "x"}}}, 400, "syntheticMonitor"),
        ({"checkerType": "VPC_CHECKERS"}, 400, "VPC_CHECKERS"),
        ({"httpCheck": {"body": "e30="}}, 400, "only a POST"),
        ({"httpCheck": {"serviceAgentAuthentication": {"type": "OIDC_TOKEN"}}}, 400, "needs use_ssl"),
    ],
)
def test_an_uptime_check_that_cannot_be_is_refused(project, wrong, status, word):
    assert word in project.refusal(status, "POST", CHECKS, CHECK | wrong)["message"]


def test_a_role_for_one_kind_allows_nothing_else(project):
    email = f"ops@{PARENT.partition('/')[2]}.iam.gserviceaccount.com"
    project.cloud.store.put("account", email, {"email": email, "uniqueId": "1"})
    policy_of = project.ok("POST", f"/crm/v1/{PARENT}:getIamPolicy")
    binding = {"role": "roles/monitoring.dashboardEditor", "members": [f"serviceAccount:{email}"]}
    changed = policy_of | {"bindings": [*policy_of["bindings"], binding]}
    project.ok("POST", f"/crm/v1/{PARENT}:setIamPolicy", {"policy": changed})
    project.token = project.cloud.tokens.access_token(email, SCOPE, 1e7)[0]
    project.ok("POST", DASHBOARDS, {"displayName": "x"})
    project.refusal(403, "POST", POLICIES, POLICY)
    project.refusal(403, "GET", CHECKS)


def test_an_aligner_has_the_number_of_its_definition():
    assert with_numbers({"perSeriesAligner": "ALIGN_PERCENTILE_95"}, "monitoring.Aggregation") == {
        "perSeriesAligner": 19
    }
