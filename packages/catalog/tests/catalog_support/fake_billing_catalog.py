"""SKUs as the Cloud Billing Catalog lists them: the right one for each price row, and every decoy beside them."""

from __future__ import annotations

import zlib
from decimal import Decimal

from bezel_catalog import accelerators

PLACES = {"us-east5": "Columbus", "europe-west4": "Netherlands", "asia-northeast1": "Tokyo"}
RUN, COMPUTE = "152E-C115-5142", "6F81-5844-456A"
UNITS = {"gpu-second": "s", "vcpu-second": "s", "gib-second": "GiBy.s", "million requests": "count", "chip-hour": "h"}


def tier(usd, start=0, currency="USD"):
    """One tier of a price."""
    whole = int(Decimal(usd))
    nanos = int((Decimal(usd) - whole) * 10**9)
    return {"startUsageAmount": start, "unitPrice": {"currencyCode": currency, "units": str(whole), "nanos": nanos}}


def sku(description, usd, *, regions, unit="h", usage="OnDemand", name=None, tiers=None):
    """One SKU; `tiers` in place of the only price `usd`."""
    name = name or f"{zlib.crc32(f'{description} {regions}'.encode()):08X}"
    return {
        "name": f"services/any/skus/{name}",
        "skuId": name,
        "description": description,
        "category": {"resourceFamily": "Compute", "resourceGroup": "TPU", "usageType": usage},
        "serviceRegions": list(regions),
        "pricingInfo": [
            {"pricingExpression": {"usageUnit": unit, "displayQuantity": 1, "tieredRates": tiers or [tier(usd)]}}
        ],
    }


def sku_of(row):
    """The SKU that prices a row of the price file, at the row's price."""
    usd, unit = row.usd_per_unit, UNITS[row.unit]
    if row.service == "tpu":
        place = PLACES.get(row.region, "Somewhere")
        description, usage = {
            "on-demand": (f"TpuV6e running in {place}", "OnDemand"),
            "flex-start": (f"DWS Defined Duration V6e running in {place}", "OnDemand"),
            "spot": (f"TpuV6e attached to Spot Preemptible VMs running in {place}", "Preemptible"),
        }[row.model]
        return sku(description, usd, regions=[row.region], unit=unit, usage=usage)
    if row.item == "requests":
        free = [tier("0"), tier(usd / 10**6, start=2_000_000)]
        return sku("Requests", usd, regions=["global"], unit=unit, tiers=free, name="REQUESTS")
    part = {"vcpu": "CPU", "memory": "Memory"}.get(row.item)
    if part and row.model == "request-based":
        return sku(f"Services {part} (Request-based billing)", usd, regions=[row.region], unit=unit)
    if part:
        twice = "in in" if row.region == "asia-northeast1" else "in"
        return sku(
            f"Services {part} (Instance-based billing) {twice} {row.region}", usd, regions=[row.region], unit=unit
        )
    _, name, redundancy = row.item.split(" ", 2)
    description = f"{accelerators()[name].billing_name} with {redundancy} in {row.region}"
    return sku(description, usd, regions=[row.region], unit=unit)


def list_skus(rows):
    """Billing service -> SKUs: the right ones of all rows, and the decoys in front of and behind them."""
    by_service = {RUN: [], COMPUTE: []}
    for row in rows:
        of_row = sku_of(row)
        service = by_service[COMPUTE if row.service == "tpu" else RUN]
        if of_row["skuId"] not in {each["skuId"] for each in service}:
            service.append(of_row)
    middle = len(DECOYS) // 2
    return {service: [*DECOYS[:middle], *skus, *DECOYS[middle:]] for service, skus in by_service.items()}


# What stands beside the right SKUs, some of it for nothing and much of it "OnDemand".
DECOYS = [
    sku("Capacity Optimized TpuV6e running in Columbus", "2.00", regions=["us-east5"]),
    sku("Reserved V6e TPU in Columbus in Calendar Mode", "0", regions=["us-east5"]),
    sku("Reserved TpuV6e running in Columbus", "0.00", regions=["us-east5"]),
    sku("Commitment v1: TpuV6e running in Columbus for 1 Year", "1.89", regions=["us-east5"], usage="Commit1Yr"),
    sku("Commitment v1: TpuV6e running in Columbus for 3 Years", "1.22", regions=["us-east5"]),
    sku("DWS Calendar Mode V6e running in Columbus", "1.10", regions=["us-east5"]),
    sku("TpuV6e running in Columbus", "0.90", regions=["us-east5"], usage="Preemptible"),
    sku("TpuV6e attached to Spot Preemptible VMs running in Columbus", "0.80", regions=["us-east5"]),
    sku("TpuV5e running in Columbus", "1.20", regions=["us-east5"]),
    sku("Tpu7x running in Columbus", "12.00", regions=["us-east5"]),
    sku("TpuV6e running in Mexico", "3.33", regions=["northamerica-south1"]),
    sku("Nvidia L4 GPU running in Virginia", "0.56", regions=["us-east4"]),
    sku("Jobs NVIDIA L4 GPU with no zonal redundancy in us-east4", "0.0001", regions=["us-east4"], unit="s"),
    sku("Worker Pools CPU in us-east4", "0.000011", regions=["us-east4"], unit="s"),
    sku("Jobs CPU in us-east4", "0.000018", regions=["us-east4"], unit="s"),
    sku("Services Min Instance CPU (Request-based billing)", "0.0000025", regions=["us-east4"], unit="s"),
    sku("Commitment v1: Services CPU (Instance-based billing) in us-east4", "0.000015", regions=["us-east4"], unit="s"),
    sku("Requests", "0.0000001", regions=["us-east4"], unit="count"),
    sku("Cloud Run functions Requests", "0.0000004", regions=["global"], unit="count"),
]
