"""Startup time until the first response, of a service and of a leased machine, and whether the startup probe waits.

Owns the estimates, the measured starts behind them, and what a stored compile cache saves. A service's image is pulled
before its container starts and counts in no probe. Leaves out the wait for a machine, which cannot be estimated, and
the platform's own limits of a probe (bezel.planner.rules.platform_checks).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.base.problems import setting
from bezel.planner.rules.platform_checks import GPU_PROBE_WINDOW_SECONDS
from bezel.planner.vllm.loading import PREFETCH, Loading
from bezel_base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.planner.base.hardware import LeasedHardware
    from bezel.planner.base.settings import ProbeSettings
    from bezel_catalog import Model
    from bezel_catalog.sizing.memory import MemoryFit
    from bezel_catalog.sizing.roofline import Range

# All but loading the weights: imports, compiling, CUDA graphs, warm-up. Fast: a real vLLM 0.32.0 with a tiny model
# listens after 20 s. Slow: estimated.
ENGINE_SECONDS: Range = (20.0, 180.0)
# Measured on v6e with vllm-tpu, from the machine's start to the first response: E2B 490 s, E4B 524 s, 12B 622 s and, on
# another day, 857 s; 26B-A4B and 31B about 30 min.
TPU_COLD_SECONDS: Range = (490.0, 857.0)
TPU_COLD_SECONDS_LARGE: Range = (857.0, 1800.0)
LARGE_WEIGHT_BYTES = 40_000_000_000
# Measured once: 857 s without the cache, 497 s with it.
TPU_CACHED_SHARE = 497 / 857
# Assumed, not measured: installing the container engine, pulling the image, copying the weights, vLLM's own start.
GPU_BOOT_SECONDS: Range = (240.0, 900.0)
GPU_COPY_BYTES_PER_S: Range = (0.2e9, 1.0e9)


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """Seconds from the start of a container or a machine to its first response, as (low, high)."""

    seconds: Range
    basis: str

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output, with the assumptions."""
        return {"seconds": [round(bound) for bound in self.seconds], "basis": self.basis}


@dataclass(frozen=True, slots=True)
class LeaseStart(StartEstimate):
    """The first start of a machine; further ones are faster with its compile cache, if `cached_seconds` is not None."""

    cached_seconds: Range | None = None

    @property
    def saved_seconds(self) -> Range:
        """Seconds that the stored cache saves each further lease; 0 without one."""
        (cold, coldest), (warm, warmest) = self.seconds, self.cached_seconds or self.seconds
        return cold - warm, coldest - warmest

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output, with the assumptions."""
        cached = self.cached_seconds and [round(bound) for bound in self.cached_seconds]
        return {**StartEstimate.as_output(self), "seconds_with_compile_cache": cached}


def estimate_start(fit: MemoryFit, loading: Loading = PREFETCH) -> StartEstimate:
    """The start of one instance: all weights are read, offloaded ones included."""
    read, (slow, fast), (low, high) = fit.weight_bytes + fit.draft_bytes, loading.bytes_per_second, ENGINE_SECONDS
    basis = f"estimated, not measured: weights at {slow / 1e9:g} to {fast / 1e9:g} GB/s, engine {low:g} to {high:g} s"
    return StartEstimate((low + read / fast, high + read / slow), basis)


def lease_start(model: Model, hardware: LeasedHardware, *, keeps_cache: bool) -> LeaseStart:
    """The start of one leased machine.

    Args:
        model: the checkpoint.
        hardware: of the machine.
        keeps_cache: whether compiled graphs outlive a lease; only TPUs have a cache.
    """
    if hardware.device == "tpu":
        cold = TPU_COLD_SECONDS_LARGE if model.weight_bytes > LARGE_WEIGHT_BYTES else TPU_COLD_SECONDS
        basis = "measured on v6e (490 to 857 s up to the 12B, about 30 min above); the cache's share measured once"
        cached = (cold[0] * TPU_CACHED_SHARE, cold[1] * TPU_CACHED_SHARE) if keeps_cache else None
        return LeaseStart(cold, basis, cached)
    (low, high), (slow, fast) = GPU_BOOT_SECONDS, GPU_COPY_BYTES_PER_S
    seconds = low + model.weight_bytes / fast, high + model.weight_bytes / slow
    return LeaseStart(seconds, "estimated, not measured: packages, image, weights, engine")


def check_start(start: StartEstimate, probe: ProbeSettings) -> Iterator[Problem]:
    """Check that the probe waits for a slow start: a long window costs nothing, as an exit is detected at once."""
    delay, period, failures = probe.initial_delay_seconds, probe.period_seconds, probe.failure_threshold
    window, longest = delay + period * failures, math.ceil(start.seconds[1])
    if window < longest:
        enough = min(math.ceil((longest - delay) / period), max(1, GPU_PROBE_WINDOW_SECONDS // period))
        yield Problem(
            setting("probe"),
            f"initial_delay_seconds={delay}, period_seconds={period}, failure_threshold={failures}",
            f"it fails after {window} s, and a start may take {longest} s ({start.basis}): Cloud Run would stop a "
            "container that is still loading.",
            f"set failure_threshold to {enough} or more; a faster start does not wait for it.",
        )
