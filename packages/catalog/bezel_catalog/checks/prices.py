"""Integrity rules of the price rows: no price of 0, no duplicate row, no unknown region, no gap without a reason.

Pure rules over rows, used by the command, by the refresh before it writes, and by the tests.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING

from bezel_base.errors import NOT_SET, Problem
from bezel_catalog.checks.integrity_errors import check_dated, check_known
from bezel_catalog.tpus import region_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from bezel_catalog.accelerators import Accelerator
    from bezel_catalog.prices import Price
    from bezel_catalog.tpus import TpuSlice

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
) -> Iterable[Problem]:
    """Yield the integrity errors of the price file.

    Args:
        rows: its rows, with duplicate keys.
        accelerators: accelerators of the catalogue, by id.
        tpus: TPU slices of the catalogue, by id.
        regions: every region of the cloud.
    """
    keys = Counter(row.key for row in rows)
    for key, count in keys.items():
        if count > 1:
            yield Problem(f"{_where(key)}: rows", count, "which of them applies is undefined.", "keep the latest one.")
    chips = {tpu.chip for tpu in tpus.values()}
    for row in rows:
        yield from _row(row, regions)
        if row.service == "cloud-run" and row.item.startswith("gpu "):
            yield from _gpu_row(row, accelerators)
        if row.service == "tpu":
            chip = row.item.removesuffix(" chip")
            yield from check_known(_where(row.key), "item: chip", chip, chips, "no slice in tpus.toml has such a chip.")
    yield from _parts(rows, keys)
    for gpu in accelerators.values():
        priced = {row.region for row in rows if row.item.startswith(f"gpu {gpu.id} ")} & set(gpu.regions)
        yield from _price_or_reason(f"accelerators.toml: {gpu.id}", gpu.unpriced, priced, "region open to all")
    for tpu in tpus.values():
        priced = {row.region for row in rows if row.item == f"{tpu.chip} chip" and row.model == "flex-start"}
        priced &= {region_of(zone) for zone in tpu.zones}
        yield from _price_or_reason(f"tpus.toml: {tpu.id}", tpu.unpriced, priced, "zone that accepts flex-start")


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
    offered += [
        (slice_.chip, f"{slice_.chip} chip", region_of(zone)) for slice_ in tpus.values() for zone in slice_.zones
    ]
    return tuple(dict.fromkeys(f"{name} in {region}" for name, item, region in offered if (item, region) not in priced))


def _where(key: tuple[str, str, str, str]) -> str:
    return f"prices.csv: {', '.join(key)}"


def _row(row: Price, regions: frozenset[str]) -> Iterable[Problem]:
    where = _where(row.key)
    yield from check_dated(where, row)
    yield from check_known(where, "unit", row.unit, BOUNDS, "no plan multiplies by such a unit.")
    low, high = (Decimal(bound) for bound in BOUNDS.get(row.unit, ("0", "Infinity")))
    if not row.usd_per_unit.is_finite() or not low <= row.usd_per_unit <= high:
        yield Problem(
            f"{where}: usd_per_unit",
            f"{row.usd_per_unit:f}",
            "a stack is accepted, or refused, by a price that is not charged.",
            f"write the list price (between {low} and {high} per {row.unit}), or remove the row.",
        )
    models = MODELS | OPTIONAL_MODELS
    if row.model not in models.get(row.service, ()):
        choices = "; ".join(f"{service}: {', '.join(names)}" for service, names in models.items())
        consequence = f"no plan looks for such a row of {row.service}."
        yield Problem(f"{where}: model", row.model, consequence, f"choose one of {choices}.")
    if row.region not in regions:
        consequence = "no such region exists, so the row is never used."
        yield Problem(f"{where}: region", row.region, consequence, "correct its name.")
    if "derived" in row.source and not row.is_derived:
        consequence = "a computed price is shown as a list price."
        yield Problem(f"{where}: source", row.source, consequence, "begin the source with `derived`.")


def _gpu_row(row: Price, accelerators: Mapping[str, Accelerator]) -> Iterable[Problem]:
    name = row.item.split()[1]
    yield from check_known(_where(row.key), "item: gpu", name, accelerators, "the accelerator does not exist.")
    gpu = accelerators.get(name)
    if gpu and row.region not in (offered := (*gpu.regions, *gpu.regions_on_invitation)):
        consequence = f"accelerators.toml does not offer {gpu.id} there, so no plan uses the row."
        repair = f"add the region to {gpu.id}, which has {', '.join(offered)}, or remove the row."
        yield Problem(f"{_where(row.key)}: region", row.region, consequence, repair)


def _parts(rows: Sequence[Price], keys: Container[tuple[str, str, str, str]]) -> Iterable[Problem]:
    """Parts that are billed together all have a price: one missing part leaves the whole unpriced."""
    for row in rows:
        # A price of requests alone is no error: the list gives it for every region at once.
        if row.service != "cloud-run" or row.item == "requests":
            continue
        for item in ("vcpu", "memory", "requests") if row.model == "request-based" else ("vcpu", "memory"):
            if (row.service, item, row.region, row.model) not in keys:
                consequence = f"a service there is unpriced, although its {row.item} has a price."
                repair = f"add the row {item}, {row.region}, {row.model}."
                yield Problem(f"{_where(row.key)}: {item}", NOT_SET, consequence, repair)
    present = {(row.service, row.model) for row in rows}
    for service, model in ((service, model) for service, models in MODELS.items() for model in models):
        if (service, model) not in present:
            consequence = "the billing model is unpriced everywhere."
            yield Problem(f"prices.csv: {service}, {model}", NOT_SET, consequence, "add its rows.")


def _price_or_reason(where: str, unpriced: str | None, regions: set[str], offer: str) -> Iterable[Problem]:
    if not regions and not unpriced:
        consequence = f"every stack with it is refused as unpriced in each {offer}."
        yield Problem(f"{where}: price", NOT_SET, consequence, 'add a row to prices.csv, or set `unpriced = "REASON"`.')
    if regions and unpriced:
        consequence = f"prices.csv has a price of it in {', '.join(sorted(regions))}."
        yield Problem(f"{where}: unpriced", unpriced, consequence, "remove `unpriced`.")
