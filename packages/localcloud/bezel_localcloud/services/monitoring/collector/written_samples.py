"""Samples as Managed Service for Prometheus takes them, made of scraped series; how many it counts. Pure.

A histogram's buckets, sum and count become one sample. Summaries and series without a kind, which Google stores as
several metrics each, are left out. Source of the counting: Google's page on the cost of the service (November 2026).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bezel_localcloud.routing.prometheus_samples import Buckets, Kind, ScrapedSample

Labels = tuple[tuple[str, str], ...]
_PARTS = ("_bucket", "_sum", "_count")
_NUMBERS: dict[str | None, Kind] = {"counter": "counter", "gauge": "gauge"}


@dataclass
class _Histogram:
    """What a scrape tells of one histogram."""

    counts: dict[float, float] = field(default_factory=dict)
    total: float = 0.0
    count: float | None = None


def written_samples(series: Iterable[tuple[Mapping[str, str], float]], kinds: Mapping[str, str]) -> list[ScrapedSample]:
    """The samples of a scrape, in its order.

    Args:
        series: (labels with `__name__`, value) after relabelling.
        kinds: Kind of each family.
    """
    samples: dict[tuple[str, Labels], ScrapedSample | _Histogram] = {}
    for all_labels, value in series:
        labels = {name: text for name, text in all_labels.items() if not name.startswith("__")}
        name = all_labels.get("__name__", "")
        family, part = _family_of(name, kinds)
        kind = kinds.get(family)
        if kind == "histogram":
            key = family, tuple(sorted((label, text) for label, text in labels.items() if label != "le"))
            histogram = samples.setdefault(key, _Histogram())
            if isinstance(histogram, _Histogram):
                _add(histogram, part, labels.get("le", ""), value)
        elif kind in _NUMBERS:
            samples[name, tuple(sorted(labels.items()))] = ScrapedSample(name, _NUMBERS[kind], labels, value)
    written = []
    for (family, key_labels), sample in samples.items():
        if not isinstance(sample, _Histogram):
            written.append(sample)
        elif sample.count is not None:
            written.append(ScrapedSample(family, "histogram", dict(key_labels), _buckets(sample)))
    return written


def samples_counted(samples: Iterable[ScrapedSample]) -> int:
    """How many samples Google counts: one for a number; two, and one for each bucket not empty, for a histogram."""
    count = 0
    for sample in samples:
        if isinstance(sample.value, Buckets):
            counts = sample.value.counts
            count += 2 + sum(more > less for less, more in zip((0.0, *counts), counts, strict=False))
        else:
            count += 1
    return count


def _family_of(name: str, kinds: Mapping[str, str]) -> tuple[str, str]:
    """(family, part) of a series, e.g. ("a_seconds", "_bucket") of a histogram; the part is "" for other kinds."""
    for part in _PARTS:
        if name.endswith(part) and kinds.get(name.removesuffix(part)) in {"histogram", "summary"}:
            return name.removesuffix(part), part
    # A counter's family is named without `_total` by some servers.
    if name not in kinds and kinds.get(name.removesuffix("_total")) == "counter":
        return name.removesuffix("_total"), ""
    return name, ""


def _add(histogram: _Histogram, part: str, bound: str, value: float) -> None:
    if part == "_bucket":
        try:
            histogram.counts[float(bound)] = value
        except ValueError:
            return
    elif part == "_sum":
        histogram.total = value
    elif part == "_count":
        histogram.count = value


def _buckets(histogram: _Histogram) -> Buckets:
    bounds = tuple(sorted(bound for bound in histogram.counts if math.isfinite(bound)))
    counts = tuple(histogram.counts[bound] for bound in bounds)
    return Buckets(bounds, (*counts, histogram.count or 0.0), histogram.total)
