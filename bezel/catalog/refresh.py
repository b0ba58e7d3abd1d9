"""Comparison of the price rows with the Cloud Billing Catalog: confirmed, changed, new, not found or refused.

Pure. No row is dropped: a row whose SKU is missing, ambiguous, free, or in another unit or currency is unchanged, and
the comparison reports the reason. Leaves reading the API and writing the file to bezel.cli.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bezel.catalog.accelerators import accelerators
from bezel.catalog.prices import Price
from bezel.catalog.tpus import region_of, tpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from decimal import Decimal

    from bezel.catalog.skus import SkuRule

Outcome = Literal["confirmed", "changed", "new", "not found", "refused"]
Found = dict[tuple["SkuRule", str], list["Mapping[str, Any]"]]


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison of one row with the billing catalogue.

    Attributes:
        outcome: "confirmed" at the same price, "changed", "new" (no row so far), "not found" (no SKU), "refused" (a
            SKU, but no usable price).
        old: the present row; None for a new one.
        row: the row after the refresh; for "not found" and "refused" the old one, None where there was none either.
        why: the reason for "not found" and "refused".
    """

    outcome: Outcome
    name: str
    old: Price | None
    row: Price | None
    why: str = ""


class SkuCollector:
    """Collects those SKUs of a billing service that a rule accepts, page by page.

    Args:
        rules: the rules of that service.
        regions: region -> the services whose prices are requested there.
    """

    def __init__(self, rules: Sequence[SkuRule], regions: Mapping[str, frozenset[str]]) -> None:
        self._rules = rules
        self._regions = regions
        self.seen = 0
        self.found: Found = {}

    def add(self, sku: Mapping[str, Any]) -> None:
        """Adds one SKU under each rule and region that accepts it."""
        self.seen += 1
        for rule in self._rules:
            for region, services in self._regions.items():
                if rule.service in services and rule.prices(sku, region):
                    self.found.setdefault((rule, region), []).append(sku)


def wanted_regions(rows: Iterable[Price]) -> dict[str, frozenset[str]]:
    """Return the regions to refresh, with the services there: where a machine is offered, or a price row exists."""
    pairs = {(row.region, row.service) for row in rows}
    pairs |= {
        (region, "cloud-run")
        for gpu in accelerators().values()
        for region in (*gpu.regions, *gpu.regions_on_invitation)
    }
    pairs |= {(region_of(zone), "tpu") for each in tpus().values() for zone in each.zones}
    return {
        region: frozenset(service for where, service in pairs if where == region)
        for region in sorted({where for where, _ in pairs})
    }


def compare(
    rows: Sequence[Price],
    rules: Sequence[SkuRule],
    found: Found,
    *,
    as_of: str,
) -> tuple[Compared, ...]:
    """Compare every row, in the order of the file, and append the new rows.

    Args:
        rows: the price file's rows.
        rules: all rules.
        found: the SKUs that a rule accepts in a region.
        as_of: the month of the refresh, e.g. "2026-11".
    """
    by_name = {(rule.service, rule.item, rule.model): rule for rule in rules}
    known = {row.key for row in rows}
    compared = [_compare(row, by_name.get((row.service, row.item, row.model)), found, as_of) for row in rows]
    fitting = {(rule.service, rule.item, region, rule.model): (rule, skus) for (rule, region), skus in found.items()}
    for key in sorted(fitting.keys() - known):
        rule, skus = fitting[key]
        name = ", ".join(key)
        try:
            usd, sku = _one_price(rule, skus)
        except ValueError as error:
            compared.append(Compared("refused", name, None, None, str(error)))
            continue
        row = Price(*key, rule.unit, usd, as_of, _source(rule), sku)
        compared.append(Compared("new", name, None, row))
    return tuple(compared)


def refreshed(compared: Iterable[Compared]) -> tuple[Price, ...]:
    """Return the rows of the file after a refresh: every old one, changed or not, and the new ones."""
    return tuple(each.row for each in compared if each.row is not None)


def _compare(
    row: Price,
    rule: SkuRule | None,
    found: Found,
    as_of: str,
) -> Compared:
    name = ", ".join(row.key)
    skus = found.get((rule, row.region), ()) if rule else ()
    if rule is None or not skus:
        why = "no SKU has its description, region and usage type" if rule else "skus.toml has no rule for such an item"
        return Compared("not found", name, row, row, why)
    try:
        usd, sku = _one_price(rule, skus)
    except ValueError as error:
        return Compared("refused", name, row, row, str(error))
    read = dataclasses.replace(row, usd_per_unit=usd, as_of=as_of, source=_source(rule), sku=sku)
    if usd != row.usd_per_unit:
        return Compared("changed", name, row, read)
    # An equal price may be written with more or fewer zeros: the file keeps its own digits.
    return Compared("confirmed", name, row, dataclasses.replace(read, usd_per_unit=row.usd_per_unit))


def _one_price(rule: SkuRule, skus: Sequence[Mapping[str, Any]]) -> tuple[Decimal, str]:
    """Return the price and the id of the SKU, or of one of several with the same price.

    Raises:
        ValueError: a SKU has no usable price, or the SKUs have different prices.
    """
    found: dict[str, Decimal] = {}
    for sku in skus:
        name = str(sku.get("skuId", ""))
        try:
            found[name] = rule.usd(sku)
        except ValueError as error:
            raise ValueError(f"SKU {name} ({sku.get('description')}): {error}") from None
    if len(set(found.values())) > 1:
        each = ", ".join(f"{name} {usd:f}" for name, usd in sorted(found.items()))
        raise ValueError(f"several SKUs fit and disagree: {each}")
    name = min(found)
    return found[name], name


def _source(rule: SkuRule) -> str:
    return f"Cloud Billing Catalog service {rule.billing_service}, read for the region"
