"""Leased hardware in one shape: TPU slices and machines with several GPUs.

Owns what both have in common: chips that share a model, zones, price rows and machine types. Leaves the records to
bezel_catalog and what Cloud Run offers to bezel.planner.assemble.validate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bezel_catalog import accelerator, gpu_machines, tpus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel_catalog import Accelerator, TpuSlice

Device = Literal["tpu", "gpu"]
BackEnd = Literal["queued_resource", "flex_start_vm"]

TPU_API, COMPUTE_API = "tpu.googleapis.com", "compute.googleapis.com"


@dataclass(frozen=True, slots=True)
class Quota:
    """One limit: API, id, what it counts (`unit` of it is one `thing`), and dimensions besides the place."""

    service: str
    id: str
    thing: str
    unit: int = 1
    dimensions: tuple[tuple[str, str], ...] = ()

    def describe(self, amount: int) -> str:
        """An amount in the quota's unit, and in things."""
        return f"{amount} of {self.id} ({self.things(amount)})"

    def things(self, amount: float) -> str:
        """An amount in things, such as GPUs."""
        number = amount / self.unit
        return f"{number:g} {self.thing}{'' if number == 1 or self.thing == 'GiB' else 's'}"


@dataclass(frozen=True, slots=True)
class LeasedHardware:
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
        quotas: control planes that can request it, the usual one first, each with its standard quota and that of
            flex-start and spot.
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
    quotas: Mapping[BackEnd, tuple[Quota, Quota]]

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


# Compute Engine counts v6e chips by region, with one standard quota for all TPU families that has a value for each
# family; the preemptible quota is checked first (observed in 2026).
V6E_IN_COMPUTE = (
    Quota(COMPUTE_API, "TPUS-PER-TPU-FAMILY-per-project-region", "chip", dimensions=(("tpu_family", "CT6E"),)),
    Quota(COMPUTE_API, "PREEMPTIBLE-TPU-V6E-per-project-region", "chip"),
)


def leased_hardware() -> dict[str, LeasedHardware]:
    """All hardware that can be leased, by id."""
    hardware = {
        tpu.id: LeasedHardware(
            id=tpu.id,
            device="tpu",
            chips=tpu.chips,
            slice=tpu,
            gpu=None,
            host_memory_gib=tpu.host_memory_gib,
            machine_type=tpu.machine_type,
            machine_image=tpu.machine_image,
            zones=tpu.zones,
            zones_refused=tpu.zones_refused,
            price_service="tpu",
            price_item=f"{tpu.chip} chip",
            price_quantity=tpu.chips,
            quotas={
                "queued_resource": (Quota(TPU_API, tpu.quota, "chip"), Quota(TPU_API, tpu.quota_preemptible, "chip")),
                "flex_start_vm": V6E_IN_COMPUTE,
            },
        )
        for tpu in tpus().values()
    }
    for machine in gpu_machines().values():
        hardware[machine.id] = LeasedHardware(
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
            quotas={
                "flex_start_vm": (
                    Quota(COMPUTE_API, machine.quota, "GPU"),
                    Quota(COMPUTE_API, machine.quota_preemptible, "GPU"),
                )
            },
        )
    return hardware


def find_leased_hardware(name: str) -> LeasedHardware | None:
    """The leased hardware of that id; None for an unknown id."""
    return leased_hardware().get(name)
