"""Calls of Cloud Monitoring's policies, checks and dashboards, and of Cloud Scheduler, for `ApiHarness`."""

from localcloud_support.client import PARENT, REGION

LATENCY = 'metric.type="run.googleapis.com/request_latencies" AND resource.type="cloud_run_revision"'
THRESHOLD = {"filter": LATENCY, "comparison": "COMPARISON_GT", "thresholdValue": 5, "duration": "60s"}
POLICY = {
    "displayName": "latency",
    "combiner": "OR",
    "conditions": [{"displayName": "x", "conditionThreshold": THRESHOLD}],
}
URL = {"type": "uptime_url", "labels": {"host": "llm.run.app"}}
CHECK = {"displayName": "health", "httpCheck": {"useSsl": True}, "monitoredResource": URL, "timeout": "10s"}


def observability(trial):
    """Every method once."""
    trial.owner.enable("cloudscheduler")
    _try_written_metrics(trial)
    _try_numbered(trial, "alertPolicies", POLICY)
    _try_numbered(trial, "uptimeCheckConfigs", CHECK)
    path = f"/monitoring/v1/{PARENT}/dashboards"
    made = trial("POST", path, {"displayName": "llm"}, validateOnly="false")
    one, none = f"/monitoring/v1/{made['name']}", f"{path}/none"
    trial("GET", one, missing=none)
    trial("GET", path, pageSize=1)
    trial("PATCH", one, {"displayName": "x"}, validateOnly="true", missing=none)
    trial.refuse(409, "PATCH", one, {"displayName": "x", "etag": "old"}, says="Etag")
    trial("DELETE", one, missing=none)
    _try_log_metrics(trial)
    jobs(trial)


def _try_written_metrics(trial):
    """What collectors write, and Prometheus's HTTP API."""
    series, root = f"/monitoring/v3/{PARENT}/timeSeries", f"/monitoring/v1/{PARENT}/location/global/prometheus/api/v1"
    written = {
        "metric": {"type": "prometheus.googleapis.com/tried/gauge"},
        "resource": {"type": "prometheus_target", "labels": {"location": REGION, "job": "tried"}},
        "points": [{"interval": {"endTime": "2026-01-01T00:00:00Z"}, "value": {"doubleValue": 1}}],
    }
    trial("POST", series, {"timeSeries": [written]})
    trial.refuse(400, "POST", series, {"timeSeries": [written]}, says="Points must be written in order")
    trial("GET", f"/monitoring/v3/{PARENT}/metricDescriptors", pageSize=1)
    trial("POST", f"{root}/query", {"query": "vector(1)"})
    trial.refuse(400, "POST", f"{root}/query", {"query": "1 +"}, says="parse error: unexpected end of input")
    trial("POST", f"{root}/query_range", {"query": "tried", "start": "0", "end": "60", "step": "30s"})
    trial("POST", f"{root}/series", {"match": ["tried"]})
    trial("POST", f"{root}/labels", {})
    trial("GET", f"{root}/label/job/values", match="tried")
    trial("GET", f"{root}/metadata", limit=1)


def _try_log_metrics(trial):
    """Metrics of log entries."""
    path = f"/logging/v2/{PARENT}/metrics"
    metric = {"name": "tried", "filter": "severity>=ERROR"}
    trial("POST", path, metric)
    trial.refuse(409, "POST", path, metric, says="already exists")
    trial.refuse(400, "POST", path, {"name": "other"}, says="metric.filter")
    one, none = f"{path}/tried", f"{path}/absent"
    trial("GET", one, missing=none)
    trial("GET", path, pageSize=1)
    trial("PUT", one, {"filter": "severity>=WARNING"})
    trial("DELETE", one, missing=none)


def _try_numbered(trial, collection, body):
    path = f"/monitoring/v3/{PARENT}/{collection}"
    name = trial("POST", path, body)["name"]
    one, none = f"/monitoring/v3/{name}", f"{path}/0"
    trial("GET", one, missing=none)
    trial("GET", path, pageSize=1)
    trial.refuse(400, "GET", path, filter="x", says="query parameter 'filter'")
    trial("PATCH", one, {"displayName": "x"}, updateMask="displayName", missing=none)
    trial.refuse(400, "PATCH", one, {}, updateMask="name", says="cannot be updated")
    trial("DELETE", one, missing=none)


def jobs(trial):
    locations = f"/cloudscheduler/v1/{PARENT}/locations"
    trial("GET", locations, pageSize=1)
    trial("GET", f"{locations}/{REGION}")
    path = f"{locations}/{REGION}/jobs"
    body = {"name": f"{PARENT}/locations/{REGION}/jobs/tried", "schedule": "0 0 1 1 *"}
    body |= {"httpTarget": {"uri": "http://127.0.0.1:1/"}}
    trial("POST", path, body)
    trial.refuse(409, "POST", path, body, says="already exists")
    one, none = f"{path}/tried", f"{path}/absent"
    trial("GET", one, missing=none)
    trial("GET", path, pageSize=1)
    trial("PATCH", one, {"description": "x"}, updateMask="description", missing=none)
    trial.refuse(400, "PATCH", one, {}, updateMask="state", says="cannot be updated")
    for verb in ("pause", "resume", "run"):
        trial("POST", f"{one}:{verb}", {}, missing=f"{none}:{verb}")
    trial("DELETE", one, missing=none)
