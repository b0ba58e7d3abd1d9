"""Conditions of an alert policy: which metric a filter names, and whether its points can be aligned so. Pure.

Google knows a metric when its first point is written, apart from its own services' metrics, which are always known. So
a filter with a metric that nothing here writes is refused as Google refuses it, and one of a Google service that the
catalogue does not list as not served. Queries in PromQL are checked by `written_metrics.alert_queries`; in other
languages they are refused as not served.
"""

import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from bezel_catalog.metrics import Metric, metrics
from bezel_localcloud.core.errors import ApiError, invalid, unserved_error
from bezel_localcloud.core.json_types import Json, seconds_of
from bezel_localcloud.services.monitoring.written_metrics.alert_queries import check_query_condition

KINDS = ("conditionThreshold", "conditionAbsent", "conditionMatchedLog", "conditionPrometheusQueryLanguage")
_UNSERVED = ("conditionMonitoringQueryLanguage", "conditionSql")
_METRIC = re.compile(r'\bmetric\.type\s*=\s*"([^"]*)"')
_RESOURCE = re.compile(r'\bresource\.type\s*=\s*"([^"]*)"')
_LABEL = re.compile(r"\bmetric\.labels?\.\"?([A-Za-z_]\w*)")
_LONGEST_FILTER = 2048
_NUMBERS = frozenset({"INT64", "DOUBLE"})
_ANY = frozenset({"INT64", "DOUBLE", "BOOL", "DISTRIBUTION"})
_GAUGE_OR_DELTA = frozenset({"GAUGE", "DELTA"})
# Aligner, without a percentile's number -> (kinds, types of values). Source: the aligners' descriptions in the
# discovery document of Monitoring v3.
_ALIGNERS = {
    "ALIGN_DELTA": (frozenset({"DELTA"}), _NUMBERS | {"DISTRIBUTION"}),
    "ALIGN_RATE": (frozenset({"DELTA"}), _NUMBERS),
    "ALIGN_INTERPOLATE": (frozenset({"GAUGE"}), _NUMBERS),
    "ALIGN_NEXT_OLDER": (frozenset({"GAUGE"}), _ANY),
    "ALIGN_MIN": (_GAUGE_OR_DELTA, _NUMBERS),
    "ALIGN_MAX": (_GAUGE_OR_DELTA, _NUMBERS),
    "ALIGN_MEAN": (_GAUGE_OR_DELTA, _NUMBERS),
    "ALIGN_COUNT": (_GAUGE_OR_DELTA, _NUMBERS | {"BOOL"}),
    "ALIGN_SUM": (_GAUGE_OR_DELTA, _NUMBERS | {"DISTRIBUTION"}),
    "ALIGN_STDDEV": (_GAUGE_OR_DELTA, _NUMBERS),
    "ALIGN_COUNT_TRUE": (frozenset({"GAUGE"}), frozenset({"BOOL"})),
    "ALIGN_COUNT_FALSE": (frozenset({"GAUGE"}), frozenset({"BOOL"})),
    "ALIGN_FRACTION_TRUE": (frozenset({"GAUGE"}), frozenset({"BOOL"})),
    "ALIGN_PERCENTILE": (_GAUGE_OR_DELTA, frozenset({"DISTRIBUTION"})),
    "ALIGN_PERCENT_CHANGE": (_GAUGE_OR_DELTA, _NUMBERS),
}


def check_condition(
    condition: Json, where: str, *, alone: bool, rate_limited: bool, written: Callable[[], AbstractSet[str]]
) -> None:
    """Check one condition.

    Args:
        condition: Its JSON.
        where: The place of it, as refusals name it.
        alone: Whether the policy has no other.
        rate_limited: Whether the policy limits the rate of its notifications.
        written: Returns the names of the series that collectors have written.

    Raises:
        ApiError: INVALID_ARGUMENT, NOT_FOUND for an unknown metric; NotServedError for others.
    """
    for kind in _UNSERVED:
        if condition.get(kind):
            raise unserved_error(
                f"{kind} of an alert policy", "use conditionThreshold or conditionPrometheusQueryLanguage"
            )
    kinds = [kind for kind in KINDS if condition.get(kind) is not None]
    if len(kinds) != 1:
        raise invalid(f"Field {where} must specify exactly one type of condition.", (where, "needs one condition"))
    kind, body = kinds[0], condition[kinds[0]]
    if kind == "conditionMatchedLog":
        _check_log(alone=alone, rate_limited=rate_limited)
        return
    if rate_limited:
        text = "metric-based alert policies must not specify a notification rate limit"
        raise invalid(f"Field alertStrategy.notificationRateLimit had an invalid value: {text}")
    place = f"{where}.{re.sub(r'[A-Z]', lambda match: '_' + match[0].lower(), kind)}"
    if kind == "conditionPrometheusQueryLanguage":
        check_query_condition(body, place, written())
        return
    _check_metric_condition(kind, body, where, place)


def _check_log(*, alone: bool, rate_limited: bool) -> None:
    if not alone:
        raise invalid("Alert policies with a log matching condition can only have a single condition.")
    if not rate_limited:
        raise invalid("Alert policies with a log matching condition must have a notification rate limit.")


def _check_metric_condition(kind: str, body: Json, where: str, place: str) -> None:
    _check_duration(body, place)
    if kind == "conditionThreshold" and body.get("comparison") not in {"COMPARISON_GT", "COMPARISON_LT"}:
        text = "Currently, only COMPARISON_GT and COMPARISON_LT are supported"
        raise invalid(f"Field {place}.comparison had an invalid value: {text}.", (f"{place}.comparison", text))
    _check_series(body, "filter", "aggregations", where)
    if body.get("denominatorFilter"):
        _check_series(body, "denominatorFilter", "denominatorAggregations", where)


def _check_duration(body: Json, place: str) -> None:
    try:
        seconds = seconds_of(body.get("duration"), 0.0)
    except ValueError as error:
        raise invalid(f"Field {place}.duration had an invalid value: {error}.", (f"{place}.duration", "bad")) from None
    if seconds % 60:
        text = f'Field {place}.duration had an invalid value of "{body["duration"]}": must be a multiple of 60 seconds.'
        raise invalid(text, (f"{place}.duration", "expected whole minutes"))
    if body.get("evaluationMissingData") and not seconds:
        text = "Conditions setting evaluation_missing_data must have a non-zero duration."
        value = body["evaluationMissingData"]
        raise invalid(f'Field {place}.evaluation_missing_data had an invalid value of "{value}": {text}')


def _check_series(body: Json, filter_name: str, aggregations: str, where: str) -> None:
    metric = _metric_of(str(body.get(filter_name, "")), f"{where}.filter")
    for index, aggregation in enumerate(body.get(aggregations) or []):
        aligner, period = aggregation.get("perSeriesAligner") or "ALIGN_NONE", aggregation.get("alignmentPeriod")
        if aligner == "ALIGN_NONE":
            continue
        if index == 0 and metric is not None:
            _check_aligner(metric, aligner)
        if not period or seconds_of(period, 0.0) < 60:
            text = f'Field aggregation.alignmentPeriod had an invalid value of "{period or ""}"'
            raise invalid(f"{text}: The alignment period must be at least 60 seconds.", ("alignment_period", "short"))


def _check_aligner(metric: Metric, aligner: str) -> None:
    kinds, values = _ALIGNERS[re.sub(r"_[0-9][0-9]$", "", aligner)]
    if metric.kind not in kinds or metric.value not in values:
        text = f'Field aggregation.perSeriesAligner had an invalid value of "{aligner}"'
        why = f"The aligner cannot be applied to metrics with kind {metric.kind} and value type {metric.value}."
        raise invalid(f"{text}: {why}", ("per_series_aligner", why))


def _metric_of(text: str, where: str) -> Metric:
    """The metric of a filter.

    Raises:
        ApiError: The filter names none, or one that does not exist.
    """
    start = f'Field {where} had an invalid value of "{text}"'
    if len(text) > _LONGEST_FILTER:
        raise invalid(f"{start[:200]}: it has more than {_LONGEST_FILTER} characters.", (where, "is too long"))
    named, resources = _METRIC.findall(text), _RESOURCE.findall(text)
    if len(named) != 1:
        raise invalid(f"{start}: must specify a single metric type.", (where, "must name one metric"))
    if len(resources) != 1:
        hint = 'see "https://cloud.google.com/monitoring/api/resources" for a list of available resource types.'
        why = f'must specify a restriction on "resource.type" in the filter; {hint}'
        raise invalid(f"{start}: {why}", (where, why))
    metric = metrics().get(named[0])
    if metric is None:
        domain = named[0].partition("/")[0]
        listed = {name.partition("/")[0] for name in metrics()}
        if domain.endswith(".googleapis.com") and domain not in {*listed, *_WRITTEN}:
            raise unserved_error(
                f"the metric {named[0]}", "use one that packages/catalog/bezel_catalog/data/metrics.toml lists"
            )
        again = "If a metric was created recently, it could take up to 10 minutes to become available. "
        text = f'Cannot find metric(s) that match type = "{named[0]}". {again}Please try again soon.'
        raise ApiError("NOT_FOUND", text)
    if metric.resource != resources[0] or not set(_LABEL.findall(text)) <= set(metric.labels):
        raise ApiError(
            "NOT_FOUND", "The metric referenced by the provided filter is unknown. Check the metric name and labels."
        )
    return metric


# Prefixes of metrics that exist once something writes them; nothing here does.
_WRITTEN = frozenset({"custom.googleapis.com", "prometheus.googleapis.com"})
_WRITTEN |= {"workload.googleapis.com", "external.googleapis.com"}
