"""Integrity rules of the hardware: accelerators, TPU slices, GPU machines, compared machines. Pure, over records."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from bezel.catalog.checks.integrity_errors import Fault, check_between, check_dated
from bezel.catalog.tpus import region_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bezel.catalog.accelerators import Accelerator
    from bezel.catalog.external_machines import ComparedMachine
    from bezel.catalog.machines import GpuMachine
    from bezel.catalog.tpus import TpuSlice

_SPEED = "every estimate of speed on it would be wrong by that factor."
_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")
# Every accelerator that serves models can read its whole memory 4 to 80 times a second, and does 100 to 2,000
# operations for each byte that it reads.
_READS_PER_SECOND = (4, 80)
_OPERATIONS_PER_BYTE = (100, 2000)


def check_accelerators(accelerators: Mapping[str, Accelerator], regions: frozenset[str]) -> Iterable[Fault]:
    """Yield the integrity errors of Cloud Run's accelerators."""
    for gpu in accelerators.values():
        where = f"accelerators.toml: {gpu.id}"
        yield from check_dated(where, gpu)
        yield from _rates(where, gpu.memory_bytes, gpu.bandwidth_bytes_per_s, gpu.bf16_flops)
        if gpu.fp8_flops < gpu.bf16_flops:
            yield Fault(
                where, f"fp8_flops = {gpu.fp8_flops}", _SPEED, "write the dense rate; fp8 is never slower than bf16."
            )
        if not re.fullmatch(r"\d+\.\d", gpu.compute_capability):
            yield Fault(
                where,
                f"compute_capability = {gpu.compute_capability}",
                "what its kernels can do is looked up by it.",
                "write it as in 8.9.",
            )
        for name, value in (("min_cpu", gpu.min_cpu), ("min_memory_gib", gpu.min_memory_gib)):
            yield from check_between(where, name, value, 1, 1000, "the platform's minimum decides the price.")
        for name, value in (("gpus_per_instance", gpu.gpus_per_instance), ("quota unit", gpu.quota_unit_per_gpu)):
            yield from check_between(where, name, value, 1, 1000, "quota and memory are counted by it.")
        for name in (gpu.quota, gpu.quota_zonal_redundancy):
            if not name.endswith("PerProjectRegion"):
                yield Fault(where, f"quota = {name}", "the quota could not be looked up.", "write the id of the limit.")
        if not gpu.regions and not gpu.regions_on_invitation:
            yield Fault(where, "no region", "no stack could use it.", "name the regions that offer it.")
        yield from _places(where, "regions_on_invitation", gpu.regions_on_invitation, gpu.regions)
        for region in (*gpu.regions, *gpu.regions_on_invitation):
            yield from _known_region(where, region, regions)


def check_tpus(tpus: Mapping[str, TpuSlice], regions: frozenset[str]) -> Iterable[Fault]:
    """Yield the integrity errors of the TPU slices."""
    of_chip: dict[str, tuple[int, ...]] = {}
    for each in tpus.values():
        where = f"tpus.toml: {each.id}"
        yield from check_dated(where, each)
        rates = (each.memory_bytes, each.bandwidth_bytes_per_s, each.bf16_flops, each.int8_ops)
        yield from _rates(where, *rates[:3])
        if rates != of_chip.setdefault(each.chip, rates):
            yield Fault(
                where, f"chip = {each.chip}", _SPEED, "give every slice of a chip the same rates: they are of one chip."
            )
        if math.prod(int(side) for side in re.findall(r"\d+", each.topology)) != each.chips:
            yield Fault(
                where,
                f"topology = {each.topology}, chips = {each.chips}",
                "price and memory are counted by the chips.",
                "mend one.",
            )
        if not each.zones:
            yield Fault(where, "zones = []", "no stack could use it.", "name the zones that took a request.")
        yield from _places(where, "zones_refused", each.zones_refused, each.zones)
        for zone in (*each.zones, *each.zones_refused):
            if not _ZONE.fullmatch(zone):
                yield Fault(where, f"zone {zone}", "no request can be sent there.", "write it as in us-east5-a.")
            yield from _known_region(where, region_of(zone), regions)


def check_gpu_machines(
    machines: Mapping[str, GpuMachine], accelerators: Mapping[str, Accelerator], regions: frozenset[str]
) -> Iterable[Fault]:
    """Yield the integrity errors of the machines that are leased for their GPUs."""
    for each in machines.values():
        where = f"machines.toml: {each.id}"
        yield from check_dated(where, each)
        if each.accelerator not in accelerators:
            known = ", ".join(accelerators)
            yield Fault(
                where, f"accelerator = {each.accelerator}", "it has no memory and no rates.", f"known are {known}."
            )
        yield from check_between(where, "gpus", each.gpus, 1, 16, "memory and speed are of all of them.")
        yield from check_between(where, "host_memory_gib", each.host_memory_gib, 16, 4096, "the weights pass it.")
        yield from _places(where, "zones", each.zones, ())
        for zone in each.zones:
            if not _ZONE.fullmatch(zone):
                yield Fault(where, f"zone {zone}", "no request can be sent there.", "write it as in us-east5-a.")
            yield from _known_region(where, region_of(zone), regions)


def check_compared(machines: Mapping[str, ComparedMachine], accelerators: Mapping[str, Accelerator]) -> Iterable[Fault]:
    """Yield the integrity errors of the machines of other platforms."""
    for each in machines.values():
        where = f"comparison.toml: {each.id}"
        yield from check_dated(where, each)
        if each.accelerator not in accelerators:
            known = ", ".join(accelerators)
            yield Fault(
                where, f"accelerator = {each.accelerator}", "it has no memory and no rates.", f"known are {known}."
            )
        yield from check_between(where, "count", each.count, 1, 16, "memory and price are of the whole machine.")
        if each.usd_per_hour is not None:
            yield from check_between(
                where, "usd_per_hour", float(each.usd_per_hour), 0.1, 200, "the comparison would name a wrong winner."
            )
        elif not each.source.startswith("unpriced: "):
            yield Fault(
                where, "no usd_per_hour", "nobody knows why.", "begin the source with `unpriced: ` and the reason."
            )


def _rates(where: str, memory: int, bandwidth: int, flops: int) -> Iterable[Fault]:
    yield from check_between(where, "memory_bytes", memory, 8e9, 1e12, "what fits would be judged by it.")
    if memory > 0 and bandwidth > 0:
        reads, operations = bandwidth / memory, flops / bandwidth
        yield from check_between(where, "bandwidth_bytes_per_s / memory_bytes", reads, *_READS_PER_SECOND, _SPEED)
        yield from check_between(where, "bf16_flops / bandwidth_bytes_per_s", operations, *_OPERATIONS_PER_BYTE, _SPEED)
    else:
        yield Fault(where, f"bandwidth_bytes_per_s = {bandwidth}", _SPEED, "write the datasheet's rate.")


def _places(where: str, name: str, some: tuple[str, ...], others: tuple[str, ...]) -> Iterable[Fault]:
    for place in sorted(set(some) & set(others)):
        yield Fault(where, f"{place} in {name} and not in it", "one of the two is wrong.", f"keep {place} in one list.")
    for places in (some, others):
        if list(places) != sorted(set(places)):
            yield Fault(
                where, f"{', '.join(places)}", "a place twice is not noticed.", "sort the list, each place once."
            )


def _known_region(where: str, region: str, regions: frozenset[str]) -> Iterable[Fault]:
    if region not in regions:
        yield Fault(where, f"region {region}", "no such region exists.", "correct its name, or add it to regions.toml.")
