"""TPU slices of one host: chips, memory and rates of a chip, zones, quota. Data: tpus.toml.

Prices of a chip are rows of bezel_catalog.prices (service `tpu`, item `v6e chip`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from bezel_catalog.loader import find, read_rows


@dataclass(frozen=True, slots=True)
class TpuSlice:
    """One kind of slice. Memory, bandwidth and dense operations per second are those of ONE chip, in bytes.

    `memory_bytes` is usable memory. `zones` accepted a flex-start request, `zones_refused` rejected one as unsupported.
    `quota` and `quota_preemptible` name limits of the service tpu.googleapis.com, counted in chips for each zone;
    flex-start and spot consume the preemptible one. `runtime_version` is the boot image of a node of the TPU API;
    `machine_type` and `machine_image` are the same hardware as a machine of Compute Engine, whose image has no
    container engine. `unpriced` is the reason why no price of the chip is known.
    """

    id: str
    chip: str
    chips: int
    topology: str
    memory_bytes: int
    bandwidth_bytes_per_s: int
    bf16_flops: int
    int8_ops: int
    host_cpu: int
    host_memory_gib: int
    zones: tuple[str, ...]
    zones_refused: tuple[str, ...]
    quota: str
    quota_preemptible: str
    runtime_version: str
    machine_type: str
    machine_image: str
    as_of: str
    source: str
    unpriced: str | None = None


def region_of(zone: str) -> str:
    """Return the region of a zone: its name without the last part."""
    return zone.rpartition("-")[0]


@functools.cache
def tpus() -> dict[str, TpuSlice]:
    """Return every TPU slice of the catalogue by id, e.g. "v6e-4"."""
    return read_rows(TpuSlice, "tpus.toml")


def tpu(name: str) -> TpuSlice:
    """Return the slice of that id.

    Raises:
        NotInCatalogueError: no slice has the id.
    """
    return find("TPU slice", name, tpus())
