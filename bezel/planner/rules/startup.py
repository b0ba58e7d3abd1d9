"""Startup time of a service until /health responds, and whether the startup probe waits that long.

Owns the estimate and its rule. The image is pulled before the container starts and counts in no probe. Leaves the
platform's own limits of a probe to bezel.planner.rules.platform_checks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.errors import Problem
from bezel.planner.base.problems import setting
from bezel.planner.rules.platform_checks import GPU_PROBE_WINDOW_SECONDS, probe_window
from bezel.planner.vllm.loading import PREFETCH, Loading

if TYPE_CHECKING:
    from bezel.planner.base.settings import ProbeSettings
    from bezel.planner.sizing.memory import MemoryFit
    from bezel.planner.sizing.roofline import Range

# All but loading the weights: imports, compiling, CUDA graphs, warm-up. Fast: a real vLLM 0.32.0 with a tiny model
# listens after 20 s. Slow: estimated.
ENGINE_SECONDS: Range = (20.0, 180.0)


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """Seconds from a container's start to its first response, and weight bytes loaded a second; both (low, high)."""

    seconds: Range
    bytes_per_second: Range

    @property
    def basis(self) -> str:
        """The basis of the estimate."""
        (slow, fast), (least, most) = self.bytes_per_second, ENGINE_SECONDS
        return (
            f"estimated, not measured: weights at {slow / 1e9:g} to {fast / 1e9:g} GB/s, engine {least:g} to {most:g} s"
        )

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output, with the assumptions."""
        return {"seconds": [round(bound) for bound in self.seconds], "basis": self.basis}


def estimate_start(fit: MemoryFit, loading: Loading = PREFETCH) -> StartEstimate:
    """The start of one instance: all weights are read, offloaded ones included."""
    read = fit.weight_bytes + fit.draft_bytes
    slow, fast = loading.bytes_per_second
    return StartEstimate((ENGINE_SECONDS[0] + read / fast, ENGINE_SECONDS[1] + read / slow), (slow, fast))


def check_start(start: StartEstimate, probe: ProbeSettings) -> list[Problem]:
    """Check that the probe waits for a slow start: a long window costs nothing, as an exit is detected at once."""
    window, longest = probe_window(probe), math.ceil(start.seconds[1])
    if window >= longest:
        return []
    delay, period, failures = probe.initial_delay_seconds, probe.period_seconds, probe.failure_threshold
    enough = min(math.ceil((longest - delay) / period), max(1, GPU_PROBE_WINDOW_SECONDS // period))
    return [
        Problem(
            setting("probe"),
            f"initial_delay_seconds={delay}, period_seconds={period}, failure_threshold={failures}",
            f"it gives up after {window} s, and a start may take {longest} s ({start.basis}): Cloud Run would end a "
            "container that is still loading.",
            f"set failure_threshold to {enough} or more; a faster start does not wait for it.",
        )
    ]
