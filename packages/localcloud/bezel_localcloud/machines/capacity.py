"""Capacity and quotas of machines: zones, kinds of machines, stock and limits (data/machines.toml). Pure."""

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bezel_localcloud.machines.lifecycle import HOLDING

FLEXIBLE = "FLEX_START"


@dataclass(frozen=True)
class Goods:
    """A kind of machine.

    Attributes:
        name: "v6e-4" or "g2-standard-96".
        units: Number of chips or GPUs, the unit of the quotas.
        machine_type: Its machine type in Compute Engine.
        topology: Of a TPU slice, "" for others.
        accelerator: Accelerator type of machines that are no TPU slice.
        cpus: CPUs of the host.
        memory_mib: Memory of the host.
    """

    name: str
    units: int
    machine_type: str
    cpus: int
    memory_mib: int
    topology: str = ""
    accelerator: str = ""


@dataclass(frozen=True)
class Zone:
    """A zone with machines.

    Attributes:
        name: Name of the zone.
        stock: Machines of each kind; the zone does not offer a kind that is missing here.
        flex_start: Whether it accepts requests of that provisioning model.
        stock_out: Error code when it gives up on a request; "" where it never does.
    """

    name: str
    stock: dict[str, int]
    flex_start: bool = True
    stock_out: str = ""


@dataclass(frozen=True)
class Held:
    """One machine held or waited for: the part of a request that stock and quotas count."""

    api: str
    zone: str
    goods: str
    model: str
    state: str


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parents[1] / "data" / "machines.toml").read_text(encoding="utf-8"))


def waits() -> dict[str, float]:
    """Seconds of the platform's time of each wait."""
    return dict(_table()["waits"])


def limits() -> dict[str, int]:
    """Bounds of the durations in a request, in seconds."""
    return dict(_table()["limits"])


@cache
def goods() -> dict[str, Goods]:
    """Every kind of machine by its name."""
    return {name: Goods(name, **row) for name, row in _table()["hardware"].items()}


def goods_of_machine_type(machine_type: str) -> Goods | None:
    """The kind of machine with a machine type of Compute Engine."""
    return next((machine for machine in goods().values() if machine.machine_type == machine_type), None)


@cache
def zones() -> dict[str, Zone]:
    """Every zone that has machines."""
    return {name: Zone(name, **row) for name, row in _table()["zones"].items()}


def free_machines(zone: str, kind: str, requests: Iterable[Held]) -> int:
    """Machines of a kind that a zone has left."""
    there = zones()[zone].stock.get(kind, 0) if zone in zones() else 0
    return there - sum(
        machine.zone == zone and machine.goods == kind and machine.state in HOLDING for machine in requests
    )


def quota_ids(api: str, kind: str, model: str) -> list[str]:
    """The quotas that a request counts towards: of a zone for the TPU API, of a region for Compute Engine."""
    family = api if api == "tpu" else kind.partition("-")[0].replace("v6e", "ct6e")
    result: list[str] = _table()["quotas"][family]["standard" if model == "STANDARD" else "preemptible"]
    return result


def quota_values() -> dict[str, int]:
    """A project's limit of each quota, the same in every place."""
    return dict(_table()["quota_values"])


def metric_of(quota: str) -> str:
    """Metric of a quota, as Cloud Quotas names it."""
    return str(_table()["metrics"][quota])


def is_counted(quota: str) -> bool:
    """Whether Cloud Monitoring reports its use by location only."""
    return quota not in _table()["counted_by_family"]


def quota_places(quota: str) -> tuple[str, str, list[str]]:
    """(service, dimension, locations) of a quota: zones of the TPU API, regions of Compute Engine."""
    families = [family for family, ids in _table()["quotas"].items() if any(quota in names for names in ids.values())]
    kinds = {name for name, machine in goods().items() if ("tpu" if machine.topology else "g2") in families}
    kinds |= {name for name, machine in goods().items() if machine.topology and "ct6e" in families}
    result = sorted(name for name, zone in zones().items() if kinds & zone.stock.keys())
    if "tpu" in families:
        return "tpu.googleapis.com", "zone", result
    return "compute.googleapis.com", "region", sorted({zone.rpartition("-")[0] for zone in result})


def exceeded_quotas(new: Held, requests: Iterable[Held], allowed: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    """(quota, use, limit) of each quota that a further request would exceed.

    Every request that has not been deleted counts, in any state.
    """
    others = [machine for machine in requests if machine.api == new.api and place_of(machine) == place_of(new)]
    for quota in quota_ids(new.api, new.goods, new.model):
        used = sum(
            goods()[machine.goods].units
            for machine in others
            if quota in quota_ids(machine.api, machine.goods, machine.model)
        )
        if used + goods()[new.goods].units > allowed[quota]:
            yield quota, used, allowed[quota]


def place_of(machine: Held) -> str:
    """Location in which a request counts: its zone for the TPU API, its region for Compute Engine."""
    return machine.zone if machine.api == "tpu" else machine.zone.rpartition("-")[0]
