"""Integrity rules of the price rows: no price of 0, no duplicate row, no unknown region, no gap without a reason.

Pure rules over rows, used by the command, by the refresh before it writes, and by the tests.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING

from bezel.catalog.checks.integrity_errors import Fault, check_dated
from bezel.catalog.tpus import region_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bezel.catalog.accelerators import Accelerator
    from bezel.catalog.prices import Price
    from bezel.catalog.tpus import TpuSlice

# Billing models of each service, each of which needs rows.
MODELS = {"cloud-run": ("instance-based", "request-based"), "tpu": ("on-demand", "flex-start", "spot")}
# These need no row: no list price was read for them, and a stack may set its own.
OPTIONAL_MODELS = {"compute": ("on-demand", "flex-start", "spot")}
# Bounds in USD of every real price per unit: a slip of a digit, or a price of another unit, is outside them.
BOUNDS = {
    "gpu-second": ("0.00005", "0.01"),
    "vcpu-second": ("0.000005", "0.0002"),
    "gib-second": ("0.0000005", "0.00002"),
    "million requests": ("0.05", "5"),
    "chip-hour": ("0.2", "30"),
    "machine-hour": ("0.2", "200"),
}


def check_prices(
    rows: Sequence[Price],
    accelerators: Mapping[str, Accelerator],
    tpus: Mapping[str, TpuSlice],
    regions: frozenset[str],
) -> Iterable[Fault]:
    """Yield the integrity errors of the price file.

    Args:
        rows: its rows, with duplicate keys.
        accelerators: accelerators of the catalogue, by id.
        tpus: TPU slices of the catalogue, by id.
        regions: every region of the cloud.
    """
    for name, count in Counter(row.key for row in rows).items():
        if count > 1:
            yield Fault(
                _where(name),
                f"{count} rows",
                "which of them holds would be chance.",
                "keep the one that was read last.",
            )
    for row in rows:
        yield from _row(row, accelerators, tpus, regions)
    names = {row.key for row in rows}
    yield from _parts(rows, names)
    yield from _gpus(rows, accelerators)
    yield from _chips(rows, tpus)


def unpriced_places(
    rows: Sequence[Price], accelerators: Mapping[str, Accelerator], tpus: Mapping[str, TpuSlice]
) -> tuple[str, ...]:
    """Return the places with a machine but no known price of it: not an error, but every stack there is refused."""
    priced = {(row.item, row.region) for row in rows if row.model in ("instance-based", "flex-start")}
    offered = [
        (gpu.id, f"gpu {gpu.id} no zonal redundancy", region)
        for gpu in accelerators.values()
        for region in (*gpu.regions, *gpu.regions_on_invitation)
    ]
    offered += [(each.chip, f"{each.chip} chip", region_of(zone)) for each in tpus.values() for zone in each.zones]
    return tuple(dict.fromkeys(f"{name} in {region}" for name, item, region in offered if (item, region) not in priced))


def _where(key: tuple[str, str, str, str]) -> str:
    return f"prices.csv: {', '.join(key)}"


def _row(
    row: Price, accelerators: Mapping[str, Accelerator], tpus: Mapping[str, TpuSlice], regions: frozenset[str]
) -> Iterable[Fault]:
    where = _where(row.key)
    yield from check_dated(where, row)
    low, high = (Decimal(bound) for bound in BOUNDS.get(row.unit, ("0", "0")))
    if not high:
        yield Fault(
            where, f"unit = {row.unit}", "no plan multiplies by such a unit.", f"choose one of {', '.join(BOUNDS)}."
        )
    elif not row.usd_per_unit.is_finite() or not low <= row.usd_per_unit <= high:
        yield Fault(
            where,
            f"usd_per_unit = {row.usd_per_unit:f}",
            "a stack would be let through, or refused, for a price that nobody asks.",
            f"write what the list says (between {low} and {high} per {row.unit}), or take the row out.",
        )
    every = MODELS | OPTIONAL_MODELS
    if row.model not in every.get(row.service, ()):
        known = "; ".join(f"{service}: {', '.join(models)}" for service, models in every.items())
        yield Fault(where, f"{row.service}, {row.model}", "no plan looks for such a row.", f"known are {known}.")
    if row.region not in regions:
        yield Fault(
            where, f"region = {row.region}", "no such region exists, so the row is never used.", "correct its name."
        )
    if "derived" in row.source and not row.derived:
        yield Fault(
            where,
            f"source = {row.source}",
            "the price is shown as read, though it was concluded.",
            "begin the source with `derived`.",
        )
    if row.service == "cloud-run" and row.item.startswith("gpu "):
        yield from _gpu_row(row, where, accelerators)
    if row.service == "tpu" and row.item.removesuffix(" chip") not in {each.chip for each in tpus.values()}:
        yield Fault(
            where, f"item = {row.item}", "no slice has such a chip.", "add the slice to tpus.toml, or correct it."
        )


def _gpu_row(row: Price, where: str, accelerators: Mapping[str, Accelerator]) -> Iterable[Fault]:
    gpu = accelerators.get(row.item.split()[1])
    if gpu is None:
        known = ", ".join(accelerators)
        yield Fault(where, f"item = {row.item}", "no such accelerator is known.", f"known are {known}.")
    elif row.region not in (*gpu.regions, *gpu.regions_on_invitation):
        offered = ", ".join((*gpu.regions, *gpu.regions_on_invitation))
        yield Fault(
            where,
            f"region = {row.region}",
            f"accelerators.toml does not offer {gpu.id} there, so no plan uses the row.",
            f"add the region to {gpu.id}, which has {offered}, or take the row out.",
        )


def _parts(rows: Sequence[Price], names: set[tuple[str, str, str, str]]) -> Iterable[Fault]:
    """Parts that are billed together all have a price: one missing part leaves the whole unpriced."""
    for row in rows:
        # A price of requests alone is no error: the list gives it for every region at once.
        if row.service != "cloud-run" or row.item == "requests":
            continue
        for item in ("vcpu", "memory", "requests") if row.model == "request-based" else ("vcpu", "memory"):
            if (row.service, item, row.region, row.model) not in names:
                yield Fault(
                    _where(row.key),
                    f"no row for {item}",
                    f"a service there stays unpriced, though its {row.item} has a price.",
                    f"add the row {item}, {row.region}, {row.model}.",
                )
    for service, models in MODELS.items():
        for model in models:
            if not any(key[0] == service and key[3] == model for key in names):
                yield Fault(
                    "prices.csv",
                    f"no row of {service}, {model}",
                    "a billing model would be unpriced everywhere.",
                    "add its rows: a refresh never takes a row out.",
                )


def _gpus(rows: Sequence[Price], accelerators: Mapping[str, Accelerator]) -> Iterable[Fault]:
    for gpu in accelerators.values():
        priced = {row.region for row in rows if row.item.startswith(f"gpu {gpu.id} ")}
        yield from _priced(
            f"accelerators.toml: {gpu.id}", gpu.unpriced, priced & set(gpu.regions), "region open to all"
        )


def _chips(rows: Sequence[Price], tpus: Mapping[str, TpuSlice]) -> Iterable[Fault]:
    for each in tpus.values():
        priced = {row.region for row in rows if row.item == f"{each.chip} chip" and row.model == "flex-start"}
        offered = priced & {region_of(zone) for zone in each.zones}
        yield from _priced(f"tpus.toml: {each.id}", each.unpriced, offered, "zone that takes flex-start")


def _priced(where: str, unpriced: str | None, regions: set[str], what: str) -> Iterable[Fault]:
    if not regions and not unpriced:
        yield Fault(
            where,
            "no price",
            f"every stack with it is refused as unpriced in each {what}.",
            'add a row to prices.csv, or say `unpriced = "why"`.',
        )
    if regions and unpriced:
        yield Fault(
            where,
            f"unpriced = {unpriced}",
            f"prices.csv has a price of it in {', '.join(sorted(regions))}.",
            "remove `unpriced`.",
        )
