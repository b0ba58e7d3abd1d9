"""Leased hardware in one shape: TPU slices and machines with several GPUs.

Owns what both have in common: chips that share a model, zones, price rows and machine types. Leaves the records to
bezel.catalog and what Cloud Run offers to bezel.planner.assemble.validate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bezel.catalog import accelerator, gpu_machines, tpus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.catalog import Accelerator, TpuSlice

Device = Literal["tpu", "gpu"]
BackEnd = Literal["queued_resource", "flex_start_vm"]


TPU_API, COMPUTE_API = "tpu.googleapis.com", "compute.googleapis.com"
# Compute Engine counts v6e chips by region; the preemptible quota is checked first (observed in 2026).
V6E_FAMILY = "CT6E"
V6E_IN_COMPUTE = ("TPUS-PER-TPU-FAMILY-per-project-region", "PREEMPTIBLE-TPU-V6E-per-project-region")


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of an API on some hardware; flex-start and spot consume the preemptible one."""

    service: str
    standard: str
    preemptible: str


@dataclass(frozen=True, slots=True)
class Leased:
    """One kind of hardware.

    Attributes:
        id: its name in a stack file.
        device: kind of device that the container gets.
        chips: TPU chips or GPUs, which share the model.
        slice: the record of a TPU slice, None for GPUs.
        gpu: the record of each GPU, None for a TPU slice.
        host_memory_gib: memory of its host.
        machine_type, machine_image: of Compute Engine; the image has no container engine.
        zones: zones known to have it.
        zones_refused: zones that refused a flex-start request as unsupported.
        price_service, price_item, price_quantity: its price rows.
        quotas: control planes that can request it, the usual one first, each with its quota.
    """

    id: str
    device: Device
    chips: int
    slice: TpuSlice | None
    gpu: Accelerator | None
    host_memory_gib: int
    machine_type: str
    machine_image: str
    zones: tuple[str, ...]
    zones_refused: tuple[str, ...]
    price_service: str
    price_item: str
    price_quantity: int
    quotas: Mapping[BackEnd, Quota]

    @property
    def back_ends(self) -> tuple[BackEnd, ...]:
        """Control planes that can request it, the usual one first."""
        return tuple(self.quotas)

    @property
    def disk_type(self) -> str:
        """Type of the boot disk: machines with v6e chips take only hyperdisks, machines with L4 GPUs take none."""
        return "hyperdisk-balanced" if self.gpu is None else "pd-balanced"

    @property
    def refused_as(self) -> str:
        """The name of this hardware in a checkpoint's list of refusals."""
        return "tpu" if self.gpu is None else self.gpu.id


def leased_hardware() -> dict[str, Leased]:
    """All hardware that can be leased, by id."""
    found = {
        each.id: Leased(
            id=each.id,
            device="tpu",
            chips=each.chips,
            slice=each,
            gpu=None,
            host_memory_gib=each.host_memory_gib,
            machine_type=each.machine_type,
            machine_image=each.machine_image,
            zones=each.zones,
            zones_refused=each.zones_refused,
            price_service="tpu",
            price_item=f"{each.chip} chip",
            price_quantity=each.chips,
            quotas={
                "queued_resource": Quota(TPU_API, each.quota, each.quota_preemptible),
                "flex_start_vm": Quota(COMPUTE_API, *V6E_IN_COMPUTE),
            },
        )
        for each in tpus().values()
    }
    for machine in gpu_machines().values():
        found[machine.id] = Leased(
            id=machine.id,
            device="gpu",
            chips=machine.gpus,
            slice=None,
            gpu=accelerator(machine.accelerator),
            host_memory_gib=machine.host_memory_gib,
            machine_type=machine.id,
            machine_image=machine.image,
            zones=machine.zones,
            zones_refused=(),
            price_service="compute",
            price_item=machine.id,
            price_quantity=1,
            quotas={"flex_start_vm": Quota(COMPUTE_API, machine.quota, machine.quota_preemptible)},
        )
    return found


def leased(name: str) -> Leased | None:
    """The leased hardware of that id; None for an unknown id."""
    return leased_hardware().get(name)


def leased_quota(
    hardware: Leased, back_end: BackEnd, provisioning: str
) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """(API, id, dimensions besides the location) of the quota that a request for hardware consumes.

    Compute Engine has one standard quota for all TPU families, with a value for each family.
    """
    quota = hardware.quotas[back_end]
    if provisioning != "on-demand":
        return quota.service, quota.preemptible, ()
    family = (("tpu_family", V6E_FAMILY),) if quota.standard == V6E_IN_COMPUTE[0] else ()
    return quota.service, quota.standard, family
