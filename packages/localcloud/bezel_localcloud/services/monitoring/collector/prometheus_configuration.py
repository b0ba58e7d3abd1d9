"""Configuration of Prometheus itself, as far as the collector of a leased machine has one. Pure.

Read and refused as Prometheus does: an unknown field, a wrong duration, a rule without what its action needs. A field
that Prometheus knows and localcloud does not serve is refused as an unknown one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bezel_localcloud.services.monitoring.collector.relabeling import RuleError, relabel_rule
from bezel_localcloud.services.monitoring.collector.run_monitoring import (
    ConfigurationError,
    Limits,
    ScrapeEndpoint,
    duration,
    load_yaml,
)

_TOP = frozenset({"global", "scrape_configs"})
_GLOBAL = frozenset(
    {
        "scrape_interval",
        "scrape_timeout",
        "evaluation_interval",
        "metric_name_validation_scheme",
        "metric_name_escaping_scheme",
        "external_labels",
    }
)
_JOB = frozenset(
    {
        "job_name",
        "scrape_interval",
        "scrape_timeout",
        "metrics_path",
        "scheme",
        "params",
        "sample_limit",
        "static_configs",
        "metric_relabel_configs",
    }
)
_RULE = {
    "source_labels": "sourceLabels",
    "separator": "separator",
    "target_label": "targetLabel",
    "regex": "regex",
    "modulus": "modulus",
    "replacement": "replacement",
    "action": "action",
}


@dataclass(frozen=True)
class ScrapeTarget:
    """One target of a job.

    Attributes:
        labels: Labels of its series, `job`, `instance` and the external ones among them.
    """

    endpoint: ScrapeEndpoint
    limits: Limits
    labels: Mapping[str, str]


def scrape_targets(text: str) -> tuple[ScrapeTarget, ...]:
    """The targets of a configuration.

    Raises:
        ConfigurationError: Prometheus does not accept it.
    """
    body = _mapping(load_yaml(text) or {}, "config.plain", _TOP)
    shared = _mapping(body.get("global") or {}, "config.plain", _GLOBAL)
    external = {str(name): str(value) for name, value in (shared.get("external_labels") or {}).items()}
    targets: list[ScrapeTarget] = []
    for job in body.get("scrape_configs") or []:
        fields = _mapping(job, "config.ScrapeConfig", _JOB)
        name = str(fields.get("job_name") or "")
        if not name:
            raise ConfigurationError("job_name is empty")
        endpoint, limits = _endpoint(fields, shared, name), Limits(int(fields.get("sample_limit") or 0))
        for group in fields.get("static_configs") or []:
            group_fields = _mapping(group, "struct", frozenset({"targets", "labels"}))
            for address in group_fields.get("targets") or []:
                own_labels = {str(label): str(value) for label, value in (group_fields.get("labels") or {}).items()}
                labels = {**external, "job": name, "instance": str(address), **own_labels}
                port = str(address).rpartition(":")[2]
                targets.append(ScrapeTarget(replace(endpoint, port=port), limits, labels))
    return tuple(targets)


def _endpoint(fields: Mapping[str, Any], shared: Mapping[str, Any], job: str) -> ScrapeEndpoint:
    interval = duration(str(fields.get("scrape_interval") or shared.get("scrape_interval") or "1m"), "interval")
    given_timeout = fields.get("scrape_timeout") or shared.get("scrape_timeout")
    timeout = duration(str(given_timeout), "timeout") if given_timeout else min(10.0, interval)
    if timeout > interval:
        raise ConfigurationError(f'scrape timeout greater than scrape interval for scrape config with job name "{job}"')
    try:
        rules = tuple(_rule(rule) for rule in fields.get("metric_relabel_configs") or [])
    except RuleError as error:
        raise ConfigurationError(str(error)) from None
    params = {str(name): [str(value) for value in values] for name, values in (fields.get("params") or {}).items()}
    path, scheme = str(fields.get("metrics_path") or "/metrics"), str(fields.get("scheme") or "http")
    return ScrapeEndpoint("", path, scheme, params, interval, timeout, rules)


def _rule(body: object) -> Any:
    fields = _mapping(body, "relabel.plain", frozenset(_RULE))
    return relabel_rule({_RULE[name]: value for name, value in fields.items()}, protects=False)


def _mapping(body: object, kind: str, keys: frozenset[str]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise ConfigurationError(f"yaml: unmarshal errors: cannot unmarshal {body!r} into {kind}")
    for key in body:
        if key not in keys:
            raise ConfigurationError(f"yaml: unmarshal errors: field {key} not found in type {kind}")
    return body
