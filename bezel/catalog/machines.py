"""Machines of Compute Engine with several GPUs: hardware, zones, boot image, quota. Data: machines.toml.

Prices of a machine are rows of bezel.catalog.prices (service `compute`, item the machine's id).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from bezel.catalog.loader import NotInCatalogueError, make, read_toml


@dataclass(frozen=True, slots=True)
class GpuMachine:
    """One machine type. `accelerator` is the id of the GPU's row, whose memory and rates hold for each of `gpus`.

    `image` is the family of the boot image, which holds the driver and no container engine. `quota` and
    `quota_preemptible` name limits of Compute Engine, counted in GPUs for each region. `unpriced` is the reason why no
    price of it is known.
    """

    id: str
    accelerator: str
    gpus: int
    host_cpu: int
    host_memory_gib: int
    image: str
    zones: tuple[str, ...]
    quota: str
    quota_preemptible: str
    as_of: str
    source: str
    unpriced: str | None = None


@functools.cache
def gpu_machines() -> dict[str, GpuMachine]:
    """Return every machine with GPUs of the catalogue by id, e.g. "g2-standard-96"."""
    file = "machines.toml"
    return {name: make(GpuMachine, f"{file}: {name}", row, id=name) for name, row in read_toml(file).items()}


def gpu_machine(name: str) -> GpuMachine:
    """Return the machine of that id.

    Raises:
        NotInCatalogueError: no machine has the id.
    """
    try:
        return gpu_machines()[name]
    except KeyError:
        raise NotInCatalogueError("machine", name, gpu_machines()) from None
