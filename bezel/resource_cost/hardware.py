"""Accelerators of a resource of any type: a GPU service, a leased machine, or one that has no price here.

Owns which resource types are known. On any other type, `detection` finds an accelerator, which becomes `Foreign`:
it has no price here, so it is refused. So does one beside those that are known, and a request that a resource sends
later and that is not understood (`Unread`). Resources that request no accelerator are ignored.
"""

import re
from dataclasses import dataclass, replace

from bezel.planner.base.money import Amount, Unpriced
from bezel.resource_cost.detection import accelerators
from bezel.resource_cost.inputs import InputError, Inputs
from bezel.resource_cost.prices import leases
from bezel.resource_cost.prices.gpu_service import GpuService, has_gpu
from bezel.resource_cost.prices.leases import Beside, Lease
from bezel.resource_cost.prices.scheduled_minimum import ScheduledMinimum
from bezel.resource_cost.requests.later import unread_request
from bezel.resource_cost.requests.scheduled import JOB, Unread, request_of_job

SERVICE = "gcp:cloudrunv2/service:Service"
INSTANCE = "gcp:compute/instance:Instance"
TPU_VM = "gcp:tpu/v2Vm:V2Vm"
QUEUED_RESOURCE = "gcp:tpu/v2QueuedResource:V2QueuedResource"
DYNAMIC = "pulumi-python:dynamic/"

_TPU = re.compile(r"tpu|\bct\d|\bv\d+[a-z]*-\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Foreign:
    """An accelerator on a type of resource that is not known here."""

    inputs: Inputs
    token: str
    accelerator_key: str
    accelerator: str
    run_seconds: None = None

    @property
    def may_be_tpu(self) -> bool:
        """Whether its type, input or value looks like a TPU's."""
        return _TPU.search(f"{self.token} {self.accelerator_key} {self.accelerator}") is not None

    @property
    def labels(self) -> Inputs:
        """Its labels, if it has any."""
        return self.inputs.at("labels")

    @property
    def hourly(self) -> Amount:
        """Unknown: it has no price here."""
        return Unpriced(f"an accelerator on a resource of type {self.token}")


@dataclass(frozen=True, slots=True)
class Unreadable(Foreign):
    """A request that the resource sends later and that is not understood: it may create any accelerator."""

    why: str = ""

    @property
    def may_be_tpu(self) -> bool:
        """Unknown; its price is refused in any case."""
        return False

    @property
    def hourly(self) -> Amount:
        """Unknown, as what the request creates is."""
        return Unpriced(f"what a request creates, as {self.why} is not understood")


Hardware = GpuService | Lease | Foreign


def hardware_of(token: str, inputs: Inputs) -> Hardware | ScheduledMinimum | None:
    """The accelerators of a resource; None where it requests none.

    Args:
        token: the resource's type.
        inputs: of the resource.

    Raises:
        InputError: it is not known yet whether there are any.
    """
    if not _LAST.is_of(token, inputs):
        try:
            _LAST.remember(token, inputs, _hardware_of(token, inputs))
        except InputError as error:
            _LAST.remember(token, inputs, error)
    if isinstance(_LAST.answer, InputError):
        raise InputError(*_LAST.answer.problems)
    return _LAST.answer


class _LastAnswer:
    """The answer for the last resource: each of a dozen policies asks about the same inputs, one after another."""

    def __init__(self) -> None:
        self._asked: tuple[str, Inputs] | None = None
        self.answer: Hardware | ScheduledMinimum | InputError | None = None

    def is_of(self, token: str, inputs: Inputs) -> bool:
        """Whether the last resource had this type and equal inputs."""
        return self._asked == (token, inputs)

    def remember(self, token: str, inputs: Inputs, answer: Hardware | ScheduledMinimum | InputError | None) -> None:
        """Keep an answer in place of the last one."""
        self._asked, self.answer = (token, inputs), answer


_LAST = _LastAnswer()


def _hardware_of(token: str, inputs: Inputs) -> Hardware | ScheduledMinimum | None:
    hardware, unread = _request_of_known_type(token, inputs), unread_in(token, inputs)
    if isinstance(hardware, GpuService | Lease):
        beside = accelerators.requested_by(token, inputs.values, hardware.priced_paths, _holders(hardware))
        if beside is None and unread is not None:
            beside = (unread.key, f"what {unread.why} creates")
        return replace(hardware, beside=Beside(*beside)) if beside else hardware
    if unread is not None:
        return Unreadable(inputs, token, unread.key, unread.value, why=unread.why)
    if hardware is not None:
        return hardware
    requested = accelerators.requested_by(token, inputs.values)
    return Foreign(inputs, token, *requested) if requested else None


def unread_in(token: str, inputs: Inputs) -> Unread | None:
    """A request that a resource sends later and that is not understood; None without one.

    Raises:
        InputError: an input of the request is not known yet, or cannot be read.
    """
    request = request_of_job(inputs) if token == JOB else None
    return request if isinstance(request, Unread) else unread_request(token, inputs)


def _request_of_known_type(token: str, inputs: Inputs) -> GpuService | Lease | ScheduledMinimum | None:
    """What a resource of a known type requests."""
    if token == SERVICE and has_gpu(inputs):
        return GpuService(inputs)
    if token == INSTANCE and (lease := leases.lease_of_instance(inputs)):
        return lease
    if token == TPU_VM:
        return leases.lease_of_vm(inputs)
    if token == QUEUED_RESOURCE:
        return leases.lease_of_queue(inputs)
    if token == JOB:
        request = request_of_job(inputs)
        return None if isinstance(request, Unread) else request
    if token.startswith(DYNAMIC) and (lease := leases.lease_of_request(inputs)):
        return lease
    return None


def _holders(hardware: GpuService | Lease) -> frozenset[tuple[str, ...]]:
    return hardware.holders if isinstance(hardware, Lease) else frozenset()
