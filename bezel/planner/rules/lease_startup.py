"""Startup time of a leased machine until its first response, and what the stored compile cache saves of it.

Owns the measured starts and the estimates from them. Leaves out the wait in a queue, which cannot be estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel.catalog import Model
    from bezel.planner.base.hardware import Leased
    from bezel.planner.sizing.roofline import Range

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
class LeaseStart:
    """Seconds from a machine's start to its first response, without and with an earlier lease's compile cache."""

    cold_seconds: Range
    cached_seconds: Range
    keeps_cache: bool
    basis: str

    @property
    def seconds(self) -> Range:
        """Duration of the first start; a stored cache only helps later ones."""
        return self.cold_seconds

    @property
    def saved_seconds(self) -> Range:
        """Seconds that the stored cache saves each further lease; 0 without one."""
        if not self.keeps_cache:
            return 0.0, 0.0
        (cold, coldest), (warm, warmest) = self.cold_seconds, self.cached_seconds
        return cold - warm, coldest - warmest

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output, with the assumptions."""
        return {
            "seconds": [round(end) for end in self.cold_seconds],
            "seconds_with_compile_cache": [round(end) for end in self.cached_seconds] if self.keeps_cache else None,
            "basis": self.basis,
        }


def lease_start(model: Model, hardware: Leased, *, keeps_cache: bool) -> LeaseStart:
    """The start of one machine.

    Args:
        model: the checkpoint.
        hardware: of the machine.
        keeps_cache: whether compiled graphs outlive a lease.
    """
    if hardware.device == "tpu":
        cold = TPU_COLD_SECONDS_LARGE if model.weight_bytes > LARGE_WEIGHT_BYTES else TPU_COLD_SECONDS
        warm = cold[0] * TPU_CACHED_SHARE, cold[1] * TPU_CACHED_SHARE
        basis = "measured on v6e (490 to 857 s up to the 12B, about 30 min above); the cache's share measured once"
        return LeaseStart(cold, warm, keeps_cache, basis)
    slow, fast = GPU_COPY_BYTES_PER_S
    cold = GPU_BOOT_SECONDS[0] + model.weight_bytes / fast, GPU_BOOT_SECONDS[1] + model.weight_bytes / slow
    return LeaseStart(cold, cold, keeps_cache=False, basis="estimated, not measured: packages, image, weights, engine")
