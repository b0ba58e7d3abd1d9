"""Queries in PromQL of alert policies and dashboards: whether they are queries, and whether their metrics exist. Pure.

Source: PrometheusQueryLanguageCondition in the discovery document of Monitoring v3, and for the names of the platform's
metrics cloud.google.com/monitoring/promql/promql-mapping (November 2026). Google validates that the metrics of a
condition exist unless its `disableMetricValidation` is set; the words of that refusal are not published, so they are
those of a filter's. A query of a dashboard with other variables than that of its step is not read.
"""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from bezel_catalog.metrics import metrics
from bezel_localcloud.core.errors import ApiError, invalid, unserved_error
from bezel_localcloud.core.json_types import Json, seconds_of
from bezel_localcloud.services.monitoring.promql.parser import parse
from bezel_localcloud.services.monitoring.promql.signatures import selectors_of
from bezel_localcloud.services.monitoring.promql.syntax import QueryError, UnservedPartError
from bezel_localcloud.services.monitoring.written_metrics.queried_series import is_platform_name, prometheus_name

_INTERVAL = 30.0  # seconds: evaluation intervals are multiples of it
_LONGEST_NAME = 2048
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CHART_STEP = "${__interval}"  # what Google replaces by the step of the chart
_VARIABLE = re.compile(r"\$(?:\{|\w)")
_PARTS = ("", "_bucket", "_count", "_sum")


def check_query_condition(body: Json, place: str, written: AbstractSet[str]) -> None:
    """Check a condition in PromQL.

    Args:
        body: Its JSON.
        place: The place of it, as refusals name it.
        written: Names of the series that collectors have written.

    Raises:
        ApiError: INVALID_ARGUMENT, NOT_FOUND for an unknown metric; NotServedError for a query that is not served.
    """
    text, problems = str(body.get("query", "")), list[tuple[str, str]]()
    if not text.strip():
        raise invalid(f"Field {place}.query must not be empty.", (f"{place}.query", "is empty"))
    names: list[str] = []
    try:
        names = sorted({selector.name for selector in selectors_of(parse(text))})
    except UnservedPartError as error:
        raise unserved_error(f"{error} in PromQL", "query it otherwise") from None
    except QueryError as error:
        problems.append(("query", str(error)))
    problems += _setting_problems(body)
    if problems:
        lines = "; ".join(f"Field {place}.{field} had an invalid value: {why}" for field, why in problems)
        raise invalid(f"{lines}.", *((f"{place}.{field}", why) for field, why in problems))
    if not body.get("disableMetricValidation"):
        _check_metrics(names, written)


def _setting_problems(body: Json) -> Iterator[tuple[str, str]]:
    """(Field, reason) of what is wrong beside the query."""
    for field, least in (("duration", 0.0), ("evaluationInterval", _INTERVAL)):
        snake = re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", field)
        try:
            seconds = seconds_of(body.get(field), _INTERVAL)
        except ValueError as error:
            yield snake, str(error)
            continue
        if seconds < least or (least and seconds % _INTERVAL):
            yield snake, f'"{body[field]}": must be a positive multiple of 30 seconds'
    rule, group = str(body.get("alertRule", "")), str(body.get("ruleGroup", ""))
    if rule and (len(rule) > _LONGEST_NAME or not _LABEL.fullmatch(rule)):
        yield "alert_rule", f'"{rule[:50]}": must be a label name of at most {_LONGEST_NAME} characters'
    if len(group) > _LONGEST_NAME:
        yield "rule_group", f"must have at most {_LONGEST_NAME} characters"
    for label in body.get("labels") or {}:
        if not _LABEL.fullmatch(label):
            yield "labels", f'"{label[:50]}": must be a label name'


def _check_metrics(names: list[str], written: AbstractSet[str]) -> None:
    """Check that metrics exist: the platform's, of which the catalogue lists some, or written ones."""
    platform = {prometheus_name(name) + part for name in metrics() for part in _PARTS}
    for name in names:
        if name in platform or name in written:
            continue
        if is_platform_name(name):
            text = "use one that packages/catalog/bezel_catalog/data/metrics.toml lists"
            raise unserved_error(f"the metric {name}", text)
        again = "If a metric was created recently, it could take up to 10 minutes to become available. Set "
        again += "disableMetricValidation for a metric that does not exist yet."
        raise ApiError("NOT_FOUND", f'Cannot find metric(s) that match type = "{name}". {again}')


def dashboard_query_problems(dashboard: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """(Field, reason) of each `prometheusQuery` in a dashboard that is no query."""
    if isinstance(dashboard, list):
        for index, item in enumerate(dashboard):
            yield from dashboard_query_problems(item, f"{where}[{index}]")
    elif isinstance(dashboard, dict):
        for name, value in dashboard.items():
            place = f"{where}.{name}".removeprefix(".")
            if name != "prometheusQuery" or not isinstance(value, str):
                yield from dashboard_query_problems(value, place)
            elif not _VARIABLE.search(query := value.replace(_CHART_STEP, "1m")):
                try:
                    parse(query)
                except QueryError as error:
                    yield place, str(error)
                except UnservedPartError:
                    continue  # it is a query, and no chart is drawn here
