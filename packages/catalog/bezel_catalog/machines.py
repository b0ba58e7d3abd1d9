"""Machines of Compute Engine with several GPUs, and machines of other platforms to compare with.

Data: machines.toml and comparison.toml. Prices of a machine of Compute Engine are rows of bezel_catalog.prices (service
`compute`, item the machine's id). The product never deploys to other platforms.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_catalog.loader import find, read_rows

if TYPE_CHECKING:
    from decimal import Decimal


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
    return read_rows(GpuMachine, "machines.toml")


def gpu_machine(name: str) -> GpuMachine:
    """Return the machine of that id.

    Raises:
        NotInCatalogueError: no machine has the id.
    """
    return find("machine", name, gpu_machines())


@dataclass(frozen=True, slots=True)
class ComparedMachine:
    """One machine with `count` accelerators, whose memory and rates are those of the catalogue's `accelerator`.

    `usd_per_hour` is the list price of the whole machine, read at `source`; None where `unpriced` holds the reason.
    """

    id: str
    title: str
    platform: str
    accelerator: str
    count: int
    region: str
    as_of: str
    source: str
    usd_per_hour: Decimal | None = None
    unpriced: str | None = None


@functools.cache
def compared_machines() -> dict[str, ComparedMachine]:
    """Return every machine of the comparison by id, e.g. "ec2-g6-xlarge"."""
    return read_rows(ComparedMachine, "comparison.toml")
