"""Cloud Billing Catalog v1: the public price list, by service, in pages.

Owns the reading of localcloud's own list (data/price_list.csv) and the choice of a price by time and currency. It has
what the stacks buy, what stands beside it in Google's list, and nothing else. Anybody with a token may read it.
"""

import csv
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.faults.platform import hides_price, price_factor
from bezel_localcloud.routing.router import Api, Call

api = Api("cloudbilling.googleapis.com", "Cloud Billing API")
_DATA = Path(__file__).parents[2] / "data"
_SERVICES = "/cloudbilling/v1/services"
_PAGE = 5000
_MONTHS = ZoneInfo("America/Los_Angeles")  # in which Google counts the one month that a time range may span


@dataclass(frozen=True)
class _Price:
    """One version of a SKU's price, from `effective` to the next one; the first `free` units cost nothing."""

    effective: datetime
    usd: Decimal
    free: int


@dataclass(frozen=True)
class _Sku:
    """A SKU with its prices, oldest first."""

    service: str
    id: str
    description: str
    family: str
    group: str
    usage_type: str
    regions: tuple[str, ...]
    unit: str
    prices: tuple[_Price, ...]


@api.route("GET", _SERVICES, query="pageSize pageToken")
def list_services(call: Call) -> Json:
    """The services that have a price list."""
    services = [(service, _service(service, title)) for service, title in sorted(_table()["services"].items())]
    return call.page(services, "services", default=_PAGE, max_size=_PAGE)


@api.route("GET", _SERVICES + "/{service:id}/skus", query="currencyCode startTime endTime pageSize pageToken")
def list_skus(call: Call) -> Json:
    """The SKUs of a service with their latest price, or with the prices of a time range."""
    service, currency = call.param("service"), call.query("currencyCode") or "USD"
    if service not in _table()["services"]:
        raise ApiError("NOT_FOUND", "Requested entity was not found.")
    rate = _table()["currencies"].get(currency)
    if rate is None:
        raise invalid("Request contains an invalid argument.", ("currency_code", f"{currency} is not known"))
    within, faults = _time_range(call), call.cloud.faults
    listed = []
    for sku in _skus():
        if sku.service != service or hides_price(faults, sku.id, sku.description):
            continue
        factor = Decimal(str(rate)) * Decimal(str(price_factor(faults, sku.id, sku.description)))
        if prices := _effective(sku.prices, within):
            listed.append((sku.id, _sku_json(sku, prices, currency, rate, factor)))
    return call.page(listed, "skus", default=_PAGE, max_size=_PAGE)


def _time_range(call: Call) -> tuple[datetime, datetime] | None:
    """The (start, end) of the query, None without them.

    Raises:
        ApiError: INVALID_ARGUMENT for half a range, one in the future, or one that spans months.
    """
    start, end = call.query("startTime"), call.query("endTime")
    if not start and not end:
        return None
    why = "start_time and end_time are given together"
    if start and end:
        since, until = (datetime.fromisoformat(text.upper()) for text in (start, end))
        months = {(time.astimezone(_MONTHS).year, time.astimezone(_MONTHS).month) for time in (since, until)}
        if since < until and until.timestamp() <= call.cloud.pace.now() and len(months) == 1:
            return since, until
        why = "must be past, and begin and end in one month of Los Angeles"
    raise invalid("Request contains an invalid argument.", ("start_time", why))


def _effective(prices: Sequence[_Price], within: tuple[datetime, datetime] | None) -> Sequence[_Price]:
    """The prices in effect at some time of a range, or the latest one."""
    if within is None:
        return prices[-1:]
    since, until = within
    ends = [later.effective for _, later in pairwise(prices)] + [datetime.max.replace(tzinfo=UTC)]
    return [price for price, end in zip(prices, ends, strict=True) if price.effective < until and end > since]


def _service(service: str, title: str) -> Json:
    name = {"name": f"services/{service}", "serviceId": service, "displayName": title}
    return name | {"businessEntityName": "businessEntities/GCP"}


def _sku_json(sku: _Sku, prices: Sequence[_Price], currency: str, rate: float, factor: Decimal) -> Json:
    unit = _table()["units"][sku.unit]
    kind = "GLOBAL" if sku.regions == ("global",) else "REGIONAL" if len(sku.regions) == 1 else "MULTI_REGIONAL"
    return {
        "name": f"services/{sku.service}/skus/{sku.id}",
        "skuId": sku.id,
        "description": sku.description,
        "category": {
            "serviceDisplayName": _table()["services"][sku.service],
            "resourceFamily": sku.family,
            "resourceGroup": sku.group,
            "usageType": sku.usage_type,
        },
        "serviceRegions": list(sku.regions),
        "pricingInfo": [
            {
                "summary": "",
                "pricingExpression": {
                    "usageUnit": sku.unit,
                    "displayQuantity": 1,
                    "tieredRates": _tiers(price, currency, factor),
                    "usageUnitDescription": unit["text"],
                    "baseUnit": unit["base"],
                    "baseUnitDescription": unit["base_text"],
                    "baseUnitConversionFactor": unit["factor"],
                },
                "currencyConversionRate": rate,
                "effectiveTime": price.effective.isoformat().replace("+00:00", "Z"),
            }
            | ({"aggregationInfo": _PER_ACCOUNT} if price.free else {})
            for price in prices
        ],
        "serviceProviderName": "Google",
        "geoTaxonomy": {"type": kind, "regions": [] if kind == "GLOBAL" else list(sku.regions)},
    }


_PER_ACCOUNT = {"aggregationLevel": "ACCOUNT", "aggregationInterval": "MONTHLY", "aggregationCount": 1}


def _tiers(price: _Price, currency: str, factor: Decimal) -> list[Json]:
    nanos = int((price.usd * factor * 10**9).to_integral_value())
    steps = [(0, 0), (price.free, nanos)] if price.free else [(0, nanos)]
    return [
        {
            "startUsageAmount": start,
            "unitPrice": {"currencyCode": currency, "units": str(amount // 10**9), "nanos": amount % 10**9},
        }
        for start, amount in steps
    ]


@cache
def _table() -> Json:
    return tomllib.loads((_DATA / "price_list.toml").read_text(encoding="utf-8"))


@cache
def _skus() -> tuple[_Sku, ...]:
    with (_DATA / "price_list.csv").open(newline="", encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (row["service"], row["sku"], row["effective"]))
    skus = []
    for _, versions in groupby(rows, key=lambda row: (row["service"], row["sku"])):
        first, *later = versions
        prices = tuple(_price(row) for row in (first, *later))
        same = {key: first[key] for key in ("service", "description", "family", "group", "usage_type", "unit")}
        skus.append(_Sku(**same, id=first["sku"], regions=tuple(first["regions"].split()), prices=prices))
    return tuple(skus)


def _price(row: dict[str, str]) -> _Price:
    effective = datetime.fromisoformat(f"{row['effective']}T00:00:00+00:00")
    return _Price(effective, Decimal(row["usd"]), int(row["free"] or 0))
