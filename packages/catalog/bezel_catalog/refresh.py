"""Comparison of the price rows with the Cloud Billing Catalog: confirmed, changed, new, not found or refused.

Pure. No row is dropped: a row whose SKU is missing, ambiguous, free, or in another unit or currency is unchanged, and
the comparison reports the reason. Leaves reading the API and writing the file to bezel.cli.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bezel_catalog.accelerators import accelerators
from bezel_catalog.prices import Key, Price
from bezel_catalog.tpus import region_of, tpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from decimal import Decimal

    from bezel_catalog.skus import SkuRule

Outcome = Literal["confirmed", "changed", "new", "not found", "refused"]
Matches = dict[tuple["SkuRule", str], list["Mapping[str, Any]"]]


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
        self.count = 0
        self.matches: Matches = {}

    def add(self, sku: Mapping[str, Any]) -> None:
        """Add one SKU under each rule and region that accepts it."""
        self.count += 1
        for rule in self._rules:
            for region, services in self._regions.items():
                if rule.service in services and rule.prices(sku, region):
                    self.matches.setdefault((rule, region), []).append(sku)


def regions_to_refresh(rows: Iterable[Price]) -> dict[str, frozenset[str]]:
    """Return the regions to refresh, with the services there: where a machine is offered, or a price row exists."""
    pairs = {(row.region, row.service) for row in rows}
    pairs |= {
        (region, "cloud-run")
        for gpu in accelerators().values()
        for region in (*gpu.regions, *gpu.regions_on_invitation)
    }
    pairs |= {(region_of(zone), "tpu") for tpu in tpus().values() for zone in tpu.zones}
    return {
        region: frozenset(service for where, service in pairs if where == region)
        for region in sorted({where for where, _ in pairs})
    }


def compare(rows: Sequence[Price], rules: Sequence[SkuRule], matches: Matches, *, as_of: str) -> tuple[Compared, ...]:
    """Compare every row, in the order of the file, and append the new rows.

    Args:
        rows: the price file's rows.
        rules: all rules.
        matches: the SKUs that a rule accepts in a region.
        as_of: the month of the refresh, e.g. "2026-11".
    """
    by_name = {(rule.service, rule.item, rule.model): rule for rule in rules}
    keys = {(rule.service, rule.item, region, rule.model) for rule, region in matches}
    pairs: list[tuple[Key, Price | None]] = [(row.key, row) for row in rows]
    pairs += [(key, None) for key in sorted(keys - {row.key for row in rows})]
    compared = []
    for key, row in pairs:
        service, item, region, model = key
        rule = by_name.get((service, item, model))
        compared.append(_compare(key, row, rule, matches.get((rule, region), ()) if rule else (), as_of))
    return tuple(compared)


def refreshed_rows(compared: Iterable[Compared]) -> tuple[Price, ...]:
    """Return the rows of the file after a refresh: every old one, changed or not, and the new ones."""
    return tuple(comparison.row for comparison in compared if comparison.row is not None)


def _compare(
    key: Key, old: Price | None, rule: SkuRule | None, skus: Sequence[Mapping[str, Any]], as_of: str
) -> Compared:
    name = ", ".join(key)
    if rule is None or not skus:
        why = "no SKU has its description, region and usage type" if rule else "skus.toml has no rule for such an item"
        return Compared("not found", name, old, old, why)
    try:
        usd, sku = _one_price(rule, skus)
    except ValueError as error:
        return Compared("refused", name, old, old, str(error))
    source = f"Cloud Billing Catalog service {rule.billing_service}, read for the region"
    if old is None:
        return Compared("new", name, None, Price(*key, rule.unit, usd, as_of, source, sku))
    # An equal price may be written with more or fewer zeros: the file keeps its own digits.
    outcome: Outcome = "changed" if usd != old.usd_per_unit else "confirmed"
    usd = usd if outcome == "changed" else old.usd_per_unit
    return Compared(outcome, name, old, dataclasses.replace(old, usd_per_unit=usd, as_of=as_of, source=source, sku=sku))


def _one_price(rule: SkuRule, skus: Sequence[Mapping[str, Any]]) -> tuple[Decimal, str]:
    """Return the price and the id of the SKU, or of one of several with the same price.

    Raises:
        ValueError: a SKU has no usable price, or the SKUs have different prices.
    """
    prices: dict[str, Decimal] = {}
    for sku in skus:
        name = str(sku.get("skuId", ""))
        try:
            prices[name] = rule.usd(sku)
        except ValueError as error:
            raise ValueError(f"SKU {name} ({sku.get('description')}): {error}") from None
    if len(set(prices.values())) > 1:
        listed = ", ".join(f"{name} {usd:f}" for name, usd in sorted(prices.items()))
        raise ValueError(f"several SKUs match with different prices: {listed}")
    name = min(prices)
    return prices[name], name
