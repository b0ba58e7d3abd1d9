"""Memory that a server reports about itself, from its log's lines and its metrics, each figure with its origin. Pure.

Owns the forms of these lines. Sources: vLLM 0.32.0 (v1/worker/gpu_model_runner.py and gpu/model_runner.py,
gpu_worker.py, cpu_worker.py, core/kv_cache_utils.py; the labels of `vllm:cache_config_info`) and tpu-inference
(tpu_worker.py, `Memory statistics`, summed over all chips). vLLM logs no total and no cap of a GPU. Leaves out which
lines are read.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

GIB = 1 << 30
_METRICS = "the server's /metrics (vllm:cache_config_info)"

# A server names its arguments once in each start.
_START = re.compile(r"\bnon-default args: ")
_MODEL = re.compile(r"\bnon-default args: .*?'model': '(?P<path>[^']*)'")
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "total": re.compile(r"Memory statistics \|.*\btotal_hbm_limit_gb=(?P<value>[\d.]+)GiB"),
    "cap": re.compile(r"Memory statistics \|.*\btotal_hbm_limit_cap_gb=(?P<value>[\d.]+)GiB"),
    "used": re.compile(r"Memory statistics \|.*\btotal_hbm_used_gb=(?P<value>[\d.]+)GiB"),
    "weights": re.compile(r"\bModel loading took (?P<value>[\d.]+) GiB"),
    "cache": re.compile(
        r"\bAvailable KV cache memory: (?P<value>-?[\d.]+) GiB"
        r"|Memory statistics \|.*\btotal_hbm_avail_gb=(?P<tpu>-?[\d.]+)GiB"
        r"|\bset \((?P<cpu>[\d.]+)/[\d.]+\) GiB for KV cache"
    ),
    "tokens": re.compile(r"\bKV cache size: (?P<value>[\d,]+) tokens"),
    "concurrency": re.compile(r"\bMaximum concurrency for [\d,]+ tokens per request: (?P<value>[\d.]+)x"),
    "length": re.compile(r"\bUsing max model len (?P<value>\d+)|\bMaximum concurrency for (?P<other>[\d,]+) tokens"),
}
# Of several workers of one start: the one with most weights and least cache limits the others.
_LARGEST = frozenset({"weights"})
_LABELS: Mapping[str, str] = {
    "tokens": "kv_cache_size_tokens",
    "concurrency": "kv_cache_max_concurrency",
    "utilization": "gpu_memory_utilization",
}

LOG_TEXTS = ("non-default args:", "GiB", "KV cache size", "max model len")
"""Parts of the lines that `reported_by_log` reads, to choose them from a long log."""


class Line(Protocol):
    """A line of a log."""

    @property
    def time(self) -> str | None:
        """Its time, if known."""

    @property
    def instance(self) -> str | None:
        """Id of the instance that wrote it, if known."""

    @property
    def text(self) -> str:
        """Its text."""


@dataclass(frozen=True, slots=True)
class ReportedFigure:
    """A figure and its origin."""

    value: float
    origin: str


@dataclass(frozen=True, slots=True)
class Reported:
    """Figures of one start of a server. Memory is in GiB, of one GPU or of all chips of a slice; None is unknown.

    Attributes:
        total: Memory of the accelerator.
        cap: Part of it that the server may use.
        weights: Weights as loaded, draft model included.
        used: Memory in use before the KV cache is allocated.
        cache: Memory of the KV cache.
        tokens: Tokens that the KV cache holds, by the server's count.
        concurrency: The server's "maximum concurrency" at full context.
        length: Longest sequence, in tokens.
        utilization: gpu-memory-utilization.
        model: vLLM's model argument, a path or a hub id; "" is unknown.
        cache_dtype: Type of the KV cache's elements, as the option names it; "" is unknown.
        is_cache_exact: Whether the memory of the KV cache is known to the byte.
    """

    total: ReportedFigure | None = None
    cap: ReportedFigure | None = None
    weights: ReportedFigure | None = None
    used: ReportedFigure | None = None
    cache: ReportedFigure | None = None
    tokens: ReportedFigure | None = None
    concurrency: ReportedFigure | None = None
    length: ReportedFigure | None = None
    utilization: ReportedFigure | None = None
    model: str = ""
    cache_dtype: str = ""
    is_cache_exact: bool = False

    @property
    def has_figures(self) -> bool:
        """Whether the server reported any figure."""
        return any(isinstance(getattr(self, name), ReportedFigure) for name in Reported.__dataclass_fields__)


def reported_by_log(lines: Iterable[Line]) -> Reported:
    """Figures of the newest start in a log, oldest line first; of several instances that of the last one to start."""
    starts: defaultdict[str, dict[str, Any]] = defaultdict(dict)  # readings by the names of fields
    models: dict[str, str] = {}
    newest = ""
    for line in lines:
        instance = line.instance or ""
        if _START.search(line.text):
            starts[instance] = {}
            named = _MODEL.search(line.text)
            models[instance] = named["path"] if named else ""
        figures = _figures(line.text)
        if figures or _START.search(line.text):
            newest = instance
        for name, value in figures.items():
            previous = starts[instance].get(name)
            if previous is None or (value > previous.value if name in _LARGEST else value < previous.value):
                starts[instance][name] = ReportedFigure(
                    value, f"the server's log{f', {line.time}' if line.time else ''}"
                )
    return Reported(**starts[newest], model=models.get(newest, ""))


def reported_by_metrics(config: Mapping[str, str]) -> Reported:
    """Figures of a running process.

    Args:
        config: Labels of `vllm:cache_config_info`; a label that is absent or "None" is unknown.
    """
    values = {name: _number(config.get(label, "")) for name, label in _LABELS.items()}
    readings: dict[str, Any] = {
        name: ReportedFigure(value, _METRICS) for name, value in values.items() if value is not None
    }
    explicit = _number(config.get("kv_cache_memory_bytes", ""))
    if explicit is not None:
        readings["cache"] = ReportedFigure(explicit / GIB, _METRICS)
    return Reported(**readings, cache_dtype=config.get("cache_dtype", ""), is_cache_exact=explicit is not None)


def combine(log: Reported, metrics: Reported) -> Reported:
    """Both together: the running process is preferred, and the log has what it does not report."""
    names = Reported.__dataclass_fields__
    return replace(log, **{name: value for name in names if (value := getattr(metrics, name))})


def disagreement(log: Reported, metrics: Reported) -> str | None:
    """The note that log and metrics are of two starts, as their caches differ; None where nothing says so."""
    if log.tokens is None or metrics.tokens is None or log.tokens.value == metrics.tokens.value:
        return None
    return (
        f"the log's last start has {log.tokens.value:,.0f} tokens of KV cache, the process that answered "
        f"{metrics.tokens.value:,.0f}: they are two starts or two instances, and figures of the log may not hold for it"
    )


def _figures(text: str) -> dict[str, float]:
    figures = {}
    for name, pattern in _PATTERNS.items():
        if match := pattern.search(text):
            value = next(group for group in match.groups() if group is not None)
            if (number := _number(value.replace(",", ""))) is not None:
                figures[name] = number
    return figures


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e15 else None  # inf and nan too
