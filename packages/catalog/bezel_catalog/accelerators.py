"""Accelerators of Cloud Run: memory, rates, platform minima, regions, quota. Data: accelerators.toml.

Leaves out TPU slices, which are leased (bezel_catalog.tpus).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from bezel_catalog.loader import find, read_rows


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One kind of accelerator. Bytes, bytes/s and dense FLOP/s; CPU in vCPUs; memory of the host in GiB.

    `regions` are open to everyone, `regions_on_invitation` only to projects that Google admitted.
    `quota` names the limit of the service run.googleapis.com without zonal redundancy, `quota_zonal_redundancy` the one
    with it; both are counted in `quota_unit_per_gpu` units for each GPU (1000 where the limit is in milli-GPU).
    `billing_name` is the beginning of the Cloud Billing Catalog's descriptions; `unpriced` is the reason why no price
    of it is known. `forward_compatible_cuda`: images newer than the driver's CUDA need VLLM_ENABLE_CUDA_COMPATIBILITY.
    """

    id: str
    title: str
    memory_bytes: int
    bandwidth_bytes_per_s: int
    bf16_flops: int
    fp8_flops: int
    compute_capability: str
    driver: str
    driver_cuda: str
    forward_compatible_cuda: bool
    min_cpu: int
    min_memory_gib: int
    gpus_per_instance: int
    regions: tuple[str, ...]
    regions_on_invitation: tuple[str, ...]
    quota: str
    quota_zonal_redundancy: str
    quota_unit_per_gpu: int
    billing_name: str
    as_of: str
    source: str
    unpriced: str | None = None


@functools.cache
def accelerators() -> dict[str, Accelerator]:
    """Return every accelerator of the catalogue by id."""
    return read_rows(Accelerator, "accelerators.toml")


def accelerator(name: str) -> Accelerator:
    """Return the accelerator of that id.

    Raises:
        NotInCatalogueError: no accelerator has the id.
    """
    return find("accelerator", name, accelerators())
