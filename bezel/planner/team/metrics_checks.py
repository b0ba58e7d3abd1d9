"""Checks of `observability.metrics`: a server without figures, and an instance without room for the collector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import of_option, setting
from bezel.planner.rules.platform_checks import MEMORY_OF_CPU
from bezel.planner.team.metrics_plan import COLLECTOR_CPU
from bezel_base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.planner.base.settings import Settings
    from bezel_catalog import Accelerator

_METRICS = f"`{setting('observability')}: {{metrics: true}}`"


def check_metrics(settings: Settings, values: Mapping[str, Any], gpu: Accelerator | None = None) -> Iterator[Problem]:
    """Refuse what leaves nothing to keep, or no room for the collector.

    Args:
        settings: of the stack.
        values: of the server's options, as vLLM reads them.
        gpu: of a Cloud Run service; None for leased machines, which have room.
    """
    if not settings.observability.metrics:
        return
    if values.get("disable-log-stats") is True:
        yield of_option(
            "disable-log-stats",
            True,
            f"vLLM then counts nothing, and its /metrics has none of the figures that {_METRICS} keeps.",
            "remove one of the two.",
        )
    most = max(MEMORY_OF_CPU)
    if gpu is None or gpu.min_cpu > most:
        return
    cpu = settings.resources.cpu or gpu.min_cpu
    if cpu <= most < cpu + COLLECTOR_CPU:
        smaller = max(size for size in MEMORY_OF_CPU if size + COLLECTOR_CPU <= most)
        yield Problem(
            setting("resources.cpu"),
            cpu,
            f"{_METRICS} adds a collector with {COLLECTOR_CPU} vCPU to each instance, and Cloud Run gives an instance "
            f"{most} at most.",
            f"set it to {smaller} or less, or remove the metrics.",
        )
