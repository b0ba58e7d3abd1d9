"""Rules that select the Cloud Billing Catalog's SKU of each item and read its price. Data: skus.toml.

Pure rules over SKUs as `v1/services/{id}/skus` lists them. A SKU is matched by its whole description, usage type,
regions, unit and currency, because the same list has reserved, committed and calendar SKUs of the same chip, some of
them with a price of 0. Leaves fetching to bezel.cli and the comparison with the price rows to bezel_catalog.refresh.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from bezel_catalog.accelerators import accelerators
from bezel_catalog.loader import make, read_toml
from bezel_catalog.tpus import tpus

if TYPE_CHECKING:
    from collections.abc import Mapping

GLOBAL = "global"
# Refused even if a rule's expression matches by mistake: none of these is an on-demand price.
_NEVER = re.compile(
    r"\b(reserved|reservation|commitment|committed|calendar|capacity optimized|jobs|worker pools)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class SkuRule:
    """The rule that identifies the SKUs of one item, in every region.

    Attributes:
        service, item, model, unit: those of the price rows.
        billing_service: the id under which the SKUs are listed.
        description: expression for the whole description; `{region}` is replaced by the region's id.
        usage_type: the category's usage type.
        usage_unit: the unit of the SKU's price; `per` of them are one unit of the row.
        everywhere: whether one SKU covers all regions.
    """

    service: str
    item: str
    model: str
    unit: str
    billing_service: str
    description: str
    usage_type: str
    usage_unit: str
    as_of: str
    source: str
    per: int = 1
    everywhere: bool = False

    def prices(self, sku: Mapping[str, Any], region: str) -> bool:
        """Whether a SKU is that of the item in a region; its price is not checked."""
        description = str(sku.get("description", ""))
        return (
            # The cheap conditions first: the largest service has about 32,000 SKUs.
            sku.get("category", {}).get("usageType") == self.usage_type
            and (GLOBAL if self.everywhere else region) in sku.get("serviceRegions", ())
            and re.fullmatch(self.description.replace("{region}", re.escape(region)), description) is not None
            and _NEVER.search(description) is None
        )

    def usd(self, sku: Mapping[str, Any]) -> Decimal:
        """Return the USD per unit of the row: the price of the last tier, if all tiers before it are free.

        Raises:
            ValueError: the SKU has no such price; the text names the reason.
        """
        try:
            expression = sku["pricingInfo"][-1]["pricingExpression"]
            tiers = [tier["unitPrice"] for tier in expression["tieredRates"]]
            prices = [Decimal(tier.get("units") or 0) + Decimal(tier.get("nanos") or 0) / 10**9 for tier in tiers]
            unit, currencies = expression["usageUnit"], {tier["currencyCode"] for tier in tiers}
        except (KeyError, IndexError, TypeError, ArithmeticError):
            raise ValueError("it has no price") from None
        if unit != self.usage_unit:
            raise ValueError(f"its price is per {unit}, not per {self.usage_unit}")
        if currencies != {"USD"}:
            raise ValueError(f"its currency is {', '.join(sorted(map(str, currencies)))}, not USD")
        if prices[-1] <= 0:
            raise ValueError(f"its price is {prices[-1]:f}")
        if any(prices[:-1]):
            raise ValueError(f"it has several prices by volume: {', '.join(f'{price:f}' for price in prices)}")
        return (prices[-1] * self.per).normalize()


def sku_rules() -> tuple[SkuRule, ...]:
    """Return a rule for each item and billing model that a refresh can read."""
    chips = sorted({tpu.chip for tpu in tpus().values()})
    rules = []
    for name, row in read_toml("skus.toml").items():
        placeholders: list[dict[str, str]] = [{}]
        if "{accelerator}" in row["item"]:
            placeholders = [
                {"{accelerator}": gpu.id, "{billing_name}": gpu.billing_name} for gpu in accelerators().values()
            ]
        elif "{chip}" in row["item"]:
            placeholders = [{"{chip}": chip, "{Chip}": chip.capitalize()} for chip in chips]
        for values in placeholders:
            item, description = row["item"], row["description"]
            for placeholder, value in values.items():
                item = item.replace(placeholder, value)
                description = description.replace(placeholder, re.escape(value))
            rules.append(make(SkuRule, f"skus.toml: {name}", {**row, "item": item, "description": description}))
    return tuple(rules)
