"""Metrics of log entries: what Google fills in, what is refused, and what a metric takes out of an entry. Pure.

Source: discovery document of logging.v2 (November 2026), LogMetric. Served are counters and distributions with
exponential or linear buckets, and the extractor EXTRACT(field). Leaves out the counting (`log_counts`).
"""

import re
from collections.abc import Iterator
from typing import Any

from bezel_localcloud.core.errors import invalid, unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.services.logging.filters import parse_filter

KIND = "logMetric"
PREFIX = "logging.googleapis.com/user/"
_ID = re.compile(r"[A-Za-z0-9_.,+!*'()-]{1,100}")
_GOOGLES_ID = re.compile(r"[A-Za-z0-9_.,+!*'()%-][A-Za-z0-9_.,+!*'()%/-]{0,99}")
_EXTRACT = re.compile(r"\s*EXTRACT\(\s*([A-Za-z_]\w*(?:\.[\w-]+)*)\s*\)\s*", re.ASCII)
_REGULAR = re.compile(r"\s*REGEXP_EXTRACT\(.*\)\s*", re.DOTALL)
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
_LONGEST_DESCRIPTION, _MOST_LABELS, _MOST_BUCKETS = 8000, 10, 200
_OPTIONS = {
    "linearBuckets": ("numFiniteBuckets", "width"),
    "exponentialBuckets": ("numFiniteBuckets", "growthFactor", "scale"),
}


def is_distribution(metric: Json) -> bool:
    """Whether a metric records values, and does not count entries alone."""
    return bool(metric["metricDescriptor"]["valueType"] == "DISTRIBUTION")


def complete_metric(body: Json) -> Json:
    """A metric with the values that Google fills in.

    Raises:
        ApiError: INVALID_ARGUMENT for a metric that cannot be; NotServedError for one that is not served.
    """
    problems = list(_problems(body))
    if problems:
        lines = "; ".join(f"Field metric.{field} had an invalid value: {why}" for field, why in problems)
        raise invalid(f"{lines}.", *((f"metric.{field}", why) for field, why in problems))
    parse_filter(body["filter"])
    sent = body.get("metricDescriptor") or {}
    descriptor: Json = {
        **{key: sent[key] for key in ("labels", "displayName") if sent.get(key)},
        "name": f"projects/{PROJECT}/metricDescriptors/{PREFIX}{body['name']}",
        "type": f"{PREFIX}{body['name']}",
        "metricKind": "DELTA",
        "valueType": sent.get("valueType", "INT64"),
        "unit": sent.get("unit") or "1",
        **({"description": body["description"]} if body.get("description") else {}),
    }
    kept = ("name", "description", "filter", "disabled", "labelExtractors", "valueExtractor", "bucketOptions")
    settable = {key: body[key] for key in kept if body.get(key)}
    return {**settable, "metricDescriptor": descriptor, "version": "V2"}


def _problems(body: Json) -> Iterator[tuple[str, str]]:
    """(Field, reason) of what cannot be.

    Raises:
        ApiError: NotServedError for what is not served.
    """
    yield from _name_problems(str(body.get("name", "")))
    if not str(body.get("filter", "")).strip():
        yield "filter", "is required"
    if len(str(body.get("description", ""))) > _LONGEST_DESCRIPTION:
        yield "description", f"has more than {_LONGEST_DESCRIPTION} characters"
    if body.get("bucketName"):
        raise unserved_error("bucketName of a metric", "leave it out: a metric of the project's entries")
    descriptor = body.get("metricDescriptor") or {}
    kind, value = descriptor.get("metricKind", "DELTA"), descriptor.get("valueType", "INT64")
    if (kind, value) not in {("DELTA", "INT64"), ("DELTA", "DISTRIBUTION")}:
        yield "metric_descriptor", f"kind {kind} with values {value}: DELTA with INT64 or with DISTRIBUTION"
    yield from _label_problems(descriptor.get("labels") or [], body.get("labelExtractors") or {})
    yield from _value_problems(body, recorded=value == "DISTRIBUTION")


def _name_problems(name: str) -> Iterator[tuple[str, str]]:
    if not _GOOGLES_ID.fullmatch(name):
        yield "name", "1 to 100 of the characters A-Z, a-z, 0-9 and _-.,+!*',()%/, and no slash at the beginning"
    elif not _ID.fullmatch(name):
        raise unserved_error("a metric's name with a slash or a percent sign", "use a name without them")


def _value_problems(body: Json, *, recorded: bool) -> Iterator[tuple[str, str]]:
    """What is wrong about the values that a metric records, or about its counting none."""
    if not recorded:
        for key, field in (("valueExtractor", "value_extractor"), ("bucketOptions", "bucket_options")):
            if body.get(key):
                yield field, "of a metric of the type DISTRIBUTION only"
        return
    if not body.get("valueExtractor"):
        yield "value_extractor", "is required for a metric of the type DISTRIBUTION"
    else:
        yield from _extractor_problems("value_extractor", body["valueExtractor"])
    yield from _bucket_problems(body.get("bucketOptions") or {})


def _label_problems(labels: list[Json], extractors: dict[str, str]) -> Iterator[tuple[str, str]]:
    keys = [str(label.get("key", "")) for label in labels]
    if len(keys) > _MOST_LABELS:
        yield "metric_descriptor.labels", f"has more than {_MOST_LABELS} members"
    for key in keys:
        if not _LABEL.fullmatch(key):
            yield "metric_descriptor.labels", f"{key[:50]!r} : expected letters, digits and underscores, a letter first"
    if len({*keys}) < len(keys) or {*keys} != extractors.keys():
        yield "label_extractors", "each label of the descriptor has one extractor, and no other has one"
    for key, text in extractors.items():
        yield from _extractor_problems(f"label_extractors.{key}", text)


def _extractor_problems(field: str, text: str) -> Iterator[tuple[str, str]]:
    if _REGULAR.fullmatch(text):
        raise unserved_error("REGEXP_EXTRACT of a metric", "use EXTRACT(field)")
    if not _EXTRACT.fullmatch(text):
        yield field, f"{text[:50]!r} is neither EXTRACT(field) nor REGEXP_EXTRACT(field, regex)"


def _bucket_problems(options: Json) -> Iterator[tuple[str, str]]:
    if "explicitBuckets" in options:
        raise unserved_error("explicitBuckets of a metric", "use exponentialBuckets or linearBuckets")
    if len(options) != 1:
        yield "bucket_options", "a metric of the type DISTRIBUTION has one kind of buckets"
        return
    ((kind, values),) = options.items()
    least = {"growthFactor": 1}
    for name in _OPTIONS[kind]:
        if not values.get(name, 0) > least.get(name, 0):
            yield f"bucket_options.{kind}.{name}", f"must be greater than {least.get(name, 0)}"
    if values.get("numFiniteBuckets", 0) > _MOST_BUCKETS:
        yield f"bucket_options.{kind}.numFiniteBuckets", f"is more than {_MOST_BUCKETS}"


def bounds_of(metric: Json) -> tuple[float, ...]:
    """Bounds of the buckets of a distribution; () of a counter."""
    ((kind, values),) = metric["bucketOptions"].items() if is_distribution(metric) else ((("", {})),)
    edges = range(values.get("numFiniteBuckets", -1) + 1)
    if kind == "linearBuckets":
        return tuple(values.get("offset", 0.0) + each * values["width"] for each in edges)
    return tuple(float(values["scale"] * values["growthFactor"] ** each) for each in edges)


def labels_of(metric: Json, entry: Json) -> dict[str, str]:
    """The labels that a metric gives an entry; the default of its type where the entry has no such field."""
    kinds = {label["key"]: label.get("valueType", "STRING") for label in metric["metricDescriptor"].get("labels", [])}
    extractors = metric.get("labelExtractors") or {}
    return {key: _label_value(_extract(extractors[key], entry), kind) for key, kind in kinds.items()}


def value_of(metric: Json, entry: Json) -> float | None:
    """What a metric records of an entry: 1 of a counter; None where a distribution finds no number."""
    if not is_distribution(metric):
        return 1.0
    value = _extract(metric["valueExtractor"], entry)
    try:
        return float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except ValueError:
        return None


def _extract(extractor: str, entry: Json) -> Any:
    match = _EXTRACT.fullmatch(extractor)
    value: Any = entry
    for part in match[1].split(".") if match else ():
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _label_value(value: Any, kind: str) -> str:
    if kind == "BOOL":
        return "true" if value is True else "false"
    if kind == "INT64":
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else "0"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return (
        str(value).lower() if isinstance(value, bool) else "" if isinstance(value, dict | list | None) else str(value)
    )
