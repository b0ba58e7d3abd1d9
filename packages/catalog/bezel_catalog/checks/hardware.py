"""Integrity rules of the hardware: accelerators, TPU slices, GPU machines, compared machines. Pure, over records."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from bezel_base.errors import NOT_SET, Problem
from bezel_catalog.checks.integrity_errors import check_between, check_dated, check_known
from bezel_catalog.tpus import region_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bezel_catalog.accelerators import Accelerator
    from bezel_catalog.machines import ComparedMachine, GpuMachine
    from bezel_catalog.tpus import TpuSlice

_SPEED = "every estimate of speed on it is wrong by that factor."
_UNUSED = "no stack can use it."
_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")
# Every accelerator that serves models can read its whole memory 4 to 80 times a second, and does 100 to 2,000
# operations for each byte that it reads.
_READS_PER_SECOND = (4, 80)
_OPERATIONS_PER_BYTE = (100, 2000)


def check_accelerators(accelerators: Mapping[str, Accelerator], regions: frozenset[str]) -> Iterable[Problem]:
    """Yield the integrity errors of Cloud Run's accelerators."""
    for gpu in accelerators.values():
        where = f"accelerators.toml: {gpu.id}"
        yield from check_dated(where, gpu)
        yield from _rates(where, gpu.memory_bytes, gpu.bandwidth_bytes_per_s, gpu.bf16_flops)
        if gpu.fp8_flops < gpu.bf16_flops:
            repair = "write the dense rate: fp8 is never slower than bf16."
            yield Problem(f"{where}: fp8_flops", gpu.fp8_flops, _SPEED, repair)
        if not re.fullmatch(r"\d+\.\d", gpu.compute_capability):
            consequence = "the kernels that it can run are looked up by it."
            yield Problem(f"{where}: compute_capability", gpu.compute_capability, consequence, "write it as in 8.9.")
        for name in ("min_cpu", "min_memory_gib", "gpus_per_instance", "quota_unit_per_gpu"):
            value = getattr(gpu, name)
            yield from check_between(where, name, value, 1, 1000, "price, memory and quota are computed from it.")
        for name in ("quota", "quota_zonal_redundancy"):
            limit = getattr(gpu, name)
            if not limit.endswith("PerProjectRegion"):
                yield Problem(f"{where}: {name}", limit, "the quota cannot be read.", "write the id of the limit.")
        if not gpu.regions and not gpu.regions_on_invitation:
            yield Problem(f"{where}: regions", NOT_SET, _UNUSED, "name the regions that offer it.")
        yield from _check_regions(
            where, {"regions": gpu.regions, "regions_on_invitation": gpu.regions_on_invitation}, regions
        )


def check_tpus(tpus: Mapping[str, TpuSlice], regions: frozenset[str]) -> Iterable[Problem]:
    """Yield the integrity errors of the TPU slices."""
    of_chip: dict[str, tuple[int, ...]] = {}
    for tpu in tpus.values():
        where = f"tpus.toml: {tpu.id}"
        yield from check_dated(where, tpu)
        rates = (tpu.memory_bytes, tpu.bandwidth_bytes_per_s, tpu.bf16_flops, tpu.int8_ops)
        yield from _rates(where, *rates[:3])
        if rates != of_chip.setdefault(tpu.chip, rates):
            repair = "give every slice of a chip the same rates: they are of one chip."
            yield Problem(f"{where}: chip", tpu.chip, _SPEED, repair)
        if math.prod(int(side) for side in re.findall(r"\d+", tpu.topology)) != tpu.chips:
            repair = f"correct it, or chips = {tpu.chips}."
            yield Problem(f"{where}: topology", tpu.topology, "price and memory are counted by the chips.", repair)
        if not tpu.zones:
            yield Problem(f"{where}: zones", NOT_SET, _UNUSED, "name the zones that accepted a request.")
        yield from _check_zones(where, {"zones": tpu.zones, "zones_refused": tpu.zones_refused}, regions)


def check_machines(
    leased: Mapping[str, GpuMachine],
    compared: Mapping[str, ComparedMachine],
    accelerators: Mapping[str, Accelerator],
    regions: frozenset[str],
) -> Iterable[Problem]:
    """Yield the integrity errors of the machines that are leased for their GPUs, and of those of other platforms."""
    rows: list[tuple[str, GpuMachine | ComparedMachine, int]] = [
        *((f"machines.toml: {machine.id}", machine, machine.gpus) for machine in leased.values()),
        *((f"comparison.toml: {other.id}", other, other.count) for other in compared.values()),
    ]
    for where, machine, count in rows:
        yield from check_dated(where, machine)
        yield from check_known(where, "accelerator", machine.accelerator, accelerators, "memory and rates are unknown.")
        yield from check_between(where, "count", count, 1, 16, "memory, speed and price are of the whole machine.")
    for gpus in leased.values():
        where = f"machines.toml: {gpus.id}"
        yield from check_between(where, "host_memory_gib", gpus.host_memory_gib, 16, 4096, "weights pass through it.")
        yield from _check_zones(where, {"zones": gpus.zones}, regions)
    for other in compared.values():
        where = f"comparison.toml: {other.id}"
        if other.usd_per_hour is not None:
            usd = float(other.usd_per_hour)
            yield from check_between(where, "usd_per_hour", usd, 0.1, 200, "the comparison names a wrong winner.")
        elif not other.unpriced:
            repair = 'set it and its source, or `unpriced = "REASON"`.'
            yield Problem(f"{where}: usd_per_hour", NOT_SET, "the reason is unknown.", repair)


def _rates(where: str, memory: int, bandwidth: int, flops: int) -> Iterable[Problem]:
    yield from check_between(where, "memory_bytes", memory, 8e9, 1e12, "memory fit is computed from it.")
    if memory > 0 and bandwidth > 0:
        reads, operations = bandwidth / memory, flops / bandwidth
        yield from check_between(where, "bandwidth_bytes_per_s / memory_bytes", reads, *_READS_PER_SECOND, _SPEED)
        yield from check_between(where, "bf16_flops / bandwidth_bytes_per_s", operations, *_OPERATIONS_PER_BYTE, _SPEED)
    else:
        yield Problem(f"{where}: bandwidth_bytes_per_s", bandwidth, _SPEED, "write the datasheet's rate.")


def _check_zones(where: str, lists: Mapping[str, tuple[str, ...]], regions: frozenset[str]) -> Iterable[Problem]:
    for zone in (zone for zones in lists.values() for zone in zones if not _ZONE.fullmatch(zone)):
        yield Problem(f"{where}: zones", zone, "no request can be sent there.", "write it as in us-east5-a.")
    yield from _check_regions(where, lists, regions, region_of)


def _check_regions(
    where: str,
    lists: Mapping[str, tuple[str, ...]],
    regions: frozenset[str],
    region: Callable[[str], str] = str,
) -> Iterable[Problem]:
    """Lists of regions or zones are sorted and disjoint, and the region of each entry exists."""
    for entry, count in Counter(entry for entries in lists.values() for entry in set(entries)).items():
        if count > 1:
            consequence = "it is in both lists, and one of them is wrong."
            yield Problem(f"{where}: {' and '.join(lists)}", entry, consequence, "keep it in one list.")
    for name, entries in lists.items():
        if list(entries) != sorted(set(entries)):
            repair = "sort the list, each entry once."
            yield Problem(f"{where}: {name}", ", ".join(entries), "a duplicate is not noticed.", repair)
        for unknown in sorted({region(entry) for entry in entries} - regions):
            repair = "correct its name, or add it to regions.toml."
            yield Problem(f"{where}: {name}: region", unknown, "no such region exists.", repair)
