"""Configuration of the collector, a `RunMonitoring`: read and refused as Google's sidecar does. Pure.

Source: GoogleCloudPlatform/run-gmp-sidecar, confgenerator/config.go and util.go at 0b730e8 and 17d5b1b, with its golden
errors, read 2026-11-29. Where its text comes from a library of Go (YAML, durations), the words here are others.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.services.monitoring.collector.relabeling import RelabelRule, RuleError, relabel_rule

API_VERSION, KIND = "monitoring.googleapis.com/v1beta", "RunMonitoring"
DEFAULT_JOB = "run-gmp-sidecar"
METADATA = ("instance", "revision", "service", "configuration")
_DURATION = re.compile("".join(f"(?:([0-9]+){unit})?" for unit in ("y", "w", "d", "h", "m", "s", "ms")))
_SECONDS = (365 * 86400, 7 * 86400, 86400, 3600, 60, 1, 0.001)
_DEFAULT_INTERVAL = 60.0  # Prometheus' own, where 0 is given
_TOP = frozenset({"apiVersion", "kind", "metadata", "spec"})
_OF_METADATA = frozenset({"name", "generateName", "namespace", "labels", "annotations", "uid"})
_OF_SPEC = frozenset({"endpoints", "targetLabels", "limits"})
_OF_ENDPOINT = frozenset({"port", "scheme", "path", "params", "proxyUrl", "interval", "timeout", "metricRelabeling"})
_OF_LIMITS = frozenset({"samples", "labels", "labelNameLength", "labelValueLength"})


class ConfigurationError(ValueError):
    """A configuration with which the collector ends; the text is what it prints."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one scrape, 0 for none: beyond one, the whole scrape fails."""

    samples: int = 0
    labels: int = 0
    name_length: int = 0
    value_length: int = 0


@dataclass(frozen=True)
class ScrapeEndpoint:
    """One target: a port of another container.

    Attributes:
        interval: Seconds between two scrapes.
        timeout: Seconds that a scrape may take.
        rules: Relabelling of what is scraped.
    """

    port: str
    path: str = "/metrics"
    scheme: str = "http"
    params: Mapping[str, Sequence[str]] = field(default_factory=dict)
    interval: float = 30.0
    timeout: float = 30.0
    rules: tuple[RelabelRule, ...] = ()


@dataclass(frozen=True)
class RunMonitoring:
    """A whole configuration.

    Attributes:
        job: Its name, which is the label `job`.
        metadata: Which of METADATA are labels of each series.
    """

    job: str = DEFAULT_JOB
    endpoints: tuple[ScrapeEndpoint, ...] = (ScrapeEndpoint("8080"),)
    metadata: tuple[str, ...] = METADATA
    limits: Limits = field(default_factory=Limits)


def run_monitoring(text: str) -> RunMonitoring:
    """Read a configuration.

    Raises:
        ConfigurationError: The collector does not accept it.
    """
    body = _mapping(load_yaml(text) or {}, "the document", _TOP)
    if body.get("apiVersion", API_VERSION) != API_VERSION:
        raise ConfigurationError(f"apiVersion must be {API_VERSION}")
    if body.get("kind", KIND) != KIND:
        raise ConfigurationError(f"kind must be {KIND}")
    metadata = _mapping(body.get("metadata") or {}, "metadata", _OF_METADATA)
    spec = _mapping(body.get("spec") or {}, "spec", _OF_SPEC)
    default = RunMonitoring()
    listed = spec.get("endpoints")
    endpoints = default.endpoints if listed is None else tuple(_endpoint(each, i) for i, each in enumerate(listed))
    labels = _mapping(spec.get("targetLabels") or {}, "targetLabels", frozenset({"metadata"}))
    listed_labels = labels.get("metadata")
    shown = METADATA if listed_labels is None else tuple(str(label) for label in listed_labels)
    for label in shown:
        if label not in METADATA and endpoints:
            text = f'metadata label "{label}" not allowed, must be one of [{" ".join(METADATA)}]'
            raise ConfigurationError(f"invalid definition for endpoint with index 0: {text}")
    limits = _mapping(spec.get("limits") or {}, "limits", _OF_LIMITS)
    keys = ("samples", "labels", "labelNameLength", "labelValueLength")
    bounds = Limits(*(_count(limits.get(key, 0), f"limits.{key}") for key in keys))
    return RunMonitoring(str(metadata.get("name") or DEFAULT_JOB), endpoints, shown, bounds)


def load_yaml(text: str) -> object:
    """The value of a document.

    Raises:
        ConfigurationError: It is no YAML, or has a key twice.
    """
    try:
        body: object = yaml.load(text, _UniqueKeys)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{error}".replace("\n", " ")) from None
    return body


def _endpoint(body: object, index: int) -> ScrapeEndpoint:
    fields = _mapping(body, f"spec.endpoints[{index}]", _OF_ENDPOINT)
    try:
        interval, timeout = _times(fields)
        rules = tuple(relabel_rule(rule) for rule in fields.get("metricRelabeling") or [])
    except (ConfigurationError, RuleError) as error:
        raise ConfigurationError(f"invalid definition for endpoint with index {index}: {error}") from None
    params = {name: [str(value) for value in values] for name, values in (fields.get("params") or {}).items()}
    scheme, path = fields.get("scheme") or "http", fields.get("path") or "/metrics"
    return ScrapeEndpoint(str(fields.get("port", "")), path, scheme, params, interval, timeout, rules)


def _times(fields: Json) -> tuple[float, float]:
    """(interval, timeout) of an endpoint in seconds."""
    interval = duration(str(fields.get("interval", "")), "interval") or _DEFAULT_INTERVAL
    timeout = duration(str(fields["timeout"]), "timeout") if fields.get("timeout") else interval
    if timeout > interval:
        text = f"scrape timeout {fields['timeout']} must not be greater than scrape interval {fields['interval']}"
        raise ConfigurationError(text)
    return interval, timeout


def duration(text: str, what: str) -> float:
    """Seconds of a duration as Prometheus writes it, e.g. 1m30s; `what` is the field, for the error.

    Raises:
        ConfigurationError: It is none.
    """
    if not text:
        raise ConfigurationError(f"invalid scrape {what}: empty duration string")
    match = None if text == "0" else _DURATION.fullmatch(text)
    if match is None and text != "0":
        raise ConfigurationError(f'invalid scrape {what}: not a valid duration string: "{text}"')
    numbers = match.groups() if match else ()
    return sum(int(number) * unit for number, unit in zip(numbers, _SECONDS, strict=False) if number)


def _mapping(body: object, place: str, keys: frozenset[str]) -> Json:
    if not isinstance(body, dict):
        raise ConfigurationError(f"{place}: a mapping is expected")
    for key in body:
        if key not in keys:
            raise ConfigurationError(f'{place}: unknown field "{key}"')
    return body


def _count(value: object, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigurationError(f"{place}: a number from 0 is expected")
    return value


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a key that is given twice is an error, as the collector's strict reader has it."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        """A mapping, if each of its keys is there once."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for index, key in enumerate(keys):
            if key in keys[:index]:
                raise yaml.YAMLError(f'mapping key "{key}" already defined')
        return super().construct_mapping(node, deep)
