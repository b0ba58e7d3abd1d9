"""Conditions of a service's alerts, as plain values. Pure.

Owns what each alert measures. Only metrics that Cloud Run itself writes are used: vLLM's own are in Cloud Monitoring
only where a collector runs beside the server (`figure_alerts`), and an alert on a metric that is never written never
opens. Without one the use of the KV cache is read from the line that vLLM logs every ten seconds while it works. Names
of metrics are looked up in the catalogue, so a wrong one fails here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bezel_catalog.metrics import metrics

_RESOURCE = "cloud_run_revision"
REQUESTS = "run.googleapis.com/request_count"
PENDING = "run.googleapis.com/pending_queue/pending_requests"
INSTANCES = "run.googleapis.com/container/instance_count"
STARTS = "run.googleapis.com/container/startup_latencies"
# Of the line of vLLM's statistics (loggers.py of vLLM 0.32): requests wait while the cache is full.
FULL_CACHE = r"Waiting: [1-9][0-9]* reqs.* KV cache usage: (9[5-9]|100)\.[0-9]%"
_ERRORS_FOR = 300  # seconds
_DAY = 86_400
_EVALUATION = 600


@dataclass(frozen=True)
class Threshold:
    """A condition on one metric, or on the ratio of two filters of it.

    Attributes:
        filter: Filter of the time series.
        above: Value above which the condition holds.
        seconds: Time that it must hold for.
        aligner: Alignment of each series, by the minute.
        denominator: Filter of the series that the first ones are divided by; "" for none.
    """

    filter: str
    above: float
    seconds: int
    aligner: str
    denominator: str = ""


@dataclass(frozen=True)
class Query:
    """A condition in PromQL that holds while the query has a result.

    Attributes:
        query: The query.
        seconds: Time that it must hold for.
        every_seconds: Time between two evaluations.
        is_written_late: Whether its metrics may be unknown to Google until something has written them.
    """

    query: str
    seconds: int = 0
    every_seconds: int = _EVALUATION
    is_written_late: bool = False


@dataclass(frozen=True)
class LogMatch:
    """A condition that holds where an entry of the log matches.

    Attributes:
        filter: Filter of the entries.
        every_seconds: It notifies once in so many seconds at most, for each combination of extracted values.
        extracted: Label of a notification -> extractor of its value.
    """

    filter: str
    every_seconds: int = 3600
    extracted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Alert:
    """One alert: id, name, condition, severity, and what to do."""

    id: str
    name: str
    condition: Threshold | Query | LogMatch
    severity: str
    repair: str


def service_alerts(
    service: str,
    location: str,
    *,
    max_error_share: float,
    start_seconds: int,
    max_cold_starts: int | None,
    idle_hours: int | None,
    logs_statistics: bool = True,
    several_regions: bool = False,
) -> tuple[Alert, ...]:
    """Return the alerts of a service.

    Args:
        service: Its name.
        location: Its region.
        max_error_share: Share of requests with a 5xx response over 5 minutes above which an alert opens.
        start_seconds: Time that an instance may take to start: requests that wait longer have no healthy instance.
        max_cold_starts: Starts of instances within 24 hours above which an alert opens; None for none.
        idle_hours: Hours that instances may run without a request; None where none runs without traffic.
        logs_statistics: Whether an alert may rest on the statistics that vLLM logs: not where they are turned off
            (`--disable-log-stats`), and not where its series are written, on which a better one rests.
        several_regions: Whether it runs in other regions too, where callers may be: their requests count as its own.
    """
    watched = f"{service} ({location})" if several_regions else service
    minutes = -(-start_seconds // 60)
    alerts = [
        Alert(
            "unhealthy",
            f"{watched}: requests wait and no instance takes them",
            Threshold(series_filter(PENDING, service, location), 0, minutes * 60, "ALIGN_MIN"),
            "CRITICAL",
            f"Requests have waited for {minutes} minutes, longer than a start may take. Read the log of the newest "
            "revision: an image, a secret or weights may be missing, or the region may have no GPUs left.",
        ),
        error_alert(
            watched,
            service,
            location,
            max_error_share,
            "Look at the request log for responses 5xx: 503 is the server's or Cloud Run's, 504 a time limit.",
        ),
    ]
    if logs_statistics:
        alerts.append(
            Alert(
                "cache-full",
                f"{watched}: requests wait for a full KV cache",
                LogMatch(log_filter(service, location, FULL_CACHE)),
                "WARNING",
                "Requests wait at the server although it could compute more: allow more instances, a shorter "
                "max-model-len, a KV cache of fewer bits, or fewer requests at once (`scaling.request_concurrency`).",
            )
        )
    if max_cold_starts is not None:
        starts = promql(f"{prometheus_name(STARTS)}_count", service, location)
        alerts.append(
            Alert(
                "cold-starts",
                f"{watched}: more than {max_cold_starts} starts in a day",
                Query(f"sum(increase({starts}[{_DAY}s])) > {max_cold_starts}"),
                "WARNING",
                "Each start is paid for from its beginning. A minimum of instances at busy hours may cost less.",
            )
        )
    if idle_hours is not None:
        running = promql(prometheus_name(INSTANCES), service, location)
        requests = promql(prometheus_name(REQUESTS), service, "" if several_regions else location)
        idle = f"(sum(increase({requests}[{idle_hours}h])) or vector(0)) == 0"
        alerts.append(
            Alert(
                "idle",
                f"{watched}: instances run and no request has come for {idle_hours} h",
                Query(f"sum(avg_over_time({running}[{idle_hours}h])) >= 1 and {idle}"),
                "WARNING",
                "Set scaling.min_instances to 0, or destroy the stack: its instances are paid for.",
            )
        )
    return tuple(alerts)


def error_alert(watched: str, service: str, location: str, max_share: float, repair: str) -> Alert:
    """The alert on the share of requests with a 5xx response; `watched` is what it calls the service."""
    failed = series_filter(REQUESTS, service, location, 'metric.labels.response_code_class="5xx"')
    return Alert(
        "errors",
        f"{watched}: more than {max_share:.0%} of requests fail",
        Threshold(failed, max_share, _ERRORS_FOR, "ALIGN_RATE", series_filter(REQUESTS, service, location)),
        "ERROR",
        repair,
    )


def series_filter(metric: str, service: str, location: str, *more: str) -> str:
    """A filter of a service's time series of a recorded metric."""
    if metrics()[metric].resource != _RESOURCE:
        raise ValueError(f"{metric} is not of the resource {_RESOURCE}")
    terms = [f'metric.type="{metric}"', f'resource.type="{_RESOURCE}"']
    terms += [f'resource.labels.service_name="{service}"', f'resource.labels.location="{location}"', *more]
    return " AND ".join(terms)


def log_filter(service: str, location: str, pattern: str) -> str:
    """A filter of a service's log lines that match a pattern of RE2."""
    quoted = pattern.replace("\\", "\\\\").replace('"', '\\"')
    return (
        f'resource.type="{_RESOURCE}" AND resource.labels.service_name="{service}" AND '
        f'resource.labels.location="{location}" AND textPayload=~"{quoted}"'
    )


def prometheus_name(metric: str) -> str:
    """A recorded metric's name in PromQL: the first slash is a colon, other signs are underscores."""
    domain, _, path = metrics()[metric].name.partition("/")
    return f"{_words(domain)}:{_words(path)}"


def promql(name: str, service: str, location: str) -> str:
    """A selector of a service's series in PromQL; "" as location for those of all its regions."""
    place = f',location="{location}"' if location else ""
    return f'{name}{{monitored_resource="{_RESOURCE}",service_name="{service}"{place}}}'


def _words(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", text)
