"""The accelerators that a resource asks for, whatever its type: a GPU service, a TPU, or one without a price here.

Owns which resource types are known. On any other type an accelerator is recognised by the names of its inputs and is
`Foreign`: it has no price here, so it is refused. What asks for no accelerator is out of account.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.money import Unpriced
from policies import leases
from policies.gpu_service import GPU, GpuService, has_gpu
from policies.inputs import UNKNOWN, Inputs, plainly
from policies.leases import Lease

if TYPE_CHECKING:
    from decimal import Decimal

    from bezel.planner.money import Amount

SERVICE = "gcp:cloudrunv2/service:Service"
INSTANCE = "gcp:compute/instance:Instance"
TPU_VM = "gcp:tpu/v2Vm:V2Vm"
QUEUED_RESOURCE = "gcp:tpu/v2QueuedResource:V2QueuedResource"
DYNAMIC = "pulumi-python:dynamic/"
GOOGLE = ("gcp:", "google-native:")
KUBERNETES = "kubernetes:"

_NAMES = frozenset(
    {
        "accelerator",
        "acceleratorConfig",
        "acceleratorType",
        "accelerator_type",
        "accelerators",
        "cloud.google.com/gke-accelerator",
        "cloud.google.com/gke-tpu-accelerator",
        "google.com/tpu",
        "guestAccelerator",
        "guestAccelerators",
        "run.googleapis.com/accelerator",
        GPU,
    }
)
_MACHINES = re.compile(r"(?:.*/)?(?:a[2-9]x?|g[2-9]|ct\d\w*|tpu\w+)-.*")
_TPU = re.compile(r"tpu|\bct\d|\bv\d+[a-z]*-\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Foreign:
    """An accelerator on a type of resource that is not known here."""

    inputs: Inputs
    token: str
    accelerator_key: str
    accelerator: str

    @property
    def may_be_tpu(self) -> bool:
        """Whether anything about it sounds like a TPU."""
        return _TPU.search(f"{self.token} {self.accelerator_key} {self.accelerator}") is not None

    @property
    def labels(self) -> Inputs:
        """Its labels, if it has any."""
        return self.inputs.at("labels")

    @property
    def hourly(self) -> Amount:
        """Unknown."""
        return Unpriced(f"an accelerator on a resource of type {self.token}")

    def monthly(self, hourly: Decimal, hours_per_month: int) -> Decimal:
        """As if it ran all month."""
        return hourly * hours_per_month


Hardware = GpuService | Lease | Foreign


def hardware_of(token: str, inputs: Inputs) -> Hardware | None:
    """The accelerators of a resource; None where it asks for none.

    Args:
        token: the resource's type.
        inputs: of the resource.

    Raises:
        InputError: whether there are any is not known yet.
    """
    if token == SERVICE and has_gpu(inputs):
        return GpuService(inputs)
    if token == INSTANCE and (found := leases.lease_of_instance(inputs)):
        return found
    if token == TPU_VM:
        return leases.lease_of_vm(inputs)
    if token == QUEUED_RESOURCE:
        return leases.lease_of_queue(inputs)
    if token.startswith(DYNAMIC) and (lease := leases.lease_of_request(inputs)):
        return lease
    if not token.startswith((*GOOGLE, KUBERNETES, DYNAMIC)):
        return None
    for key, value in _mentions(inputs.values, ()):
        return Foreign(inputs, token, ".".join(key), plainly("(not known yet)" if value is UNKNOWN else value))
    return None


def _mentions(value: object, where: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    """Inputs that name an accelerator, or a machine with one, at any depth."""
    if isinstance(value, Mapping):
        for key, held in value.items():
            if (key in _NAMES and held) or (key == "machineType" and _is_accelerated(held)):
                yield (*where, key), held
            else:
                yield from _mentions(held, (*where, key))
    elif isinstance(value, list | tuple):
        for number, held in enumerate(value):
            yield from _mentions(held, (*where, str(number)))


def _is_accelerated(machine: object) -> bool:
    return machine is UNKNOWN or (isinstance(machine, str) and _MACHINES.fullmatch(machine) is not None)
