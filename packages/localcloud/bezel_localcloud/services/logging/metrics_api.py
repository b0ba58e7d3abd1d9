"""Logging v2: projects.metrics, metrics that count log entries. PromQL reads their series (`services.monitoring`)."""

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.logging.log_metrics import KIND, complete_metric

api = Api("logging.googleapis.com", "Cloud Logging API")
_ROOT = "/logging/v2/projects/{project:id}/metrics"
_ONE = _ROOT + "/{metric:id}"
_NAME = "projects/{project}/metrics/{metric}"


@api.route("POST", _ROOT, needs="logging.logMetrics.create", body="metric")
def create(call: Call) -> Json:
    """Create a metric; it counts entries from now on."""
    metric = complete_metric(call.body)
    name = f"projects/{PROJECT}/metrics/{metric['name']}"
    with call.cloud.store.transaction():
        if call.cloud.store.get(KIND, name) is not None:
            raise ApiError("ALREADY_EXISTS", f"Metric {metric['name']} already exists")
        return _store(call, name, metric, timestamp(call.cloud.pace.now()))


@api.route("GET", _ROOT, needs="logging.logMetrics.list", query="pageSize pageToken")
def list_metrics(call: Call) -> Json:
    """Metrics of the project."""
    return call.page(call.cloud.store.rows(KIND), "metrics")


@api.route("GET", _ONE, needs="logging.logMetrics.get")
def get(call: Call) -> Json:
    """One metric."""
    return _metric(call)[1]


@api.route("PUT", _ONE, needs="logging.logMetrics.update", body="metric")
def update(call: Call) -> Json:
    """Replace a metric, or create it where there is none; its name and the types of its series stay."""
    name = call.name(_NAME)
    if call.body.get("name", "") not in {"", call.param("metric")}:
        text = f'Field metric.name had an invalid value of "{call.body["name"]}": it is not that of the resource.'
        raise invalid(text, ("metric.name", "differs from the resource's"))
    metric = complete_metric({**call.body, "name": call.param("metric")})
    with call.cloud.store.transaction():
        old = call.cloud.store.get(KIND, name)
        if old is None:
            call.require("logging.logMetrics.create", f"projects/{PROJECT}")
            return _store(call, name, metric, timestamp(call.cloud.pace.now()))
        if old["metricDescriptor"]["valueType"] != metric["metricDescriptor"]["valueType"]:
            text = "Field metric.metric_descriptor had an invalid value: the type of values cannot be changed."
            raise invalid(text, ("metric.metric_descriptor.value_type", "cannot be changed"))
        return _store(call, name, metric, old["createTime"])


@api.route("DELETE", _ONE, needs="logging.logMetrics.delete")
def delete(call: Call) -> Json:
    """Delete a metric with its counts."""
    with call.cloud.store.transaction():
        call.cloud.store.delete(KIND, _metric(call)[0])
    return {}


def _metric(call: Call) -> tuple[str, Json]:
    name = call.name(_NAME)
    return name, call.row_of(KIND, name, f"Metric {call.param('metric')} does not exist")


def _store(call: Call, name: str, metric: Json, created: str) -> Json:
    made = {
        **metric,
        "resourceName": name,
        "createTime": created,
        "updateTime": timestamp(call.cloud.pace.now()),
    }
    call.cloud.store.put(KIND, name, made)
    return made
