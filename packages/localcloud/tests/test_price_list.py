"""The Cloud Billing Catalog on localcloud: pages, currencies, times, and prices that a fault changes."""

import csv
from pathlib import Path

import pytest

import bezel_localcloud
from bezel_catalog.prices import prices
from localcloud_support.in_process import Project

RUN, COMPUTE = "/cloudbilling/v1/services/152E-C115-5142/skus", "/cloudbilling/v1/services/6F81-5844-456A/skus"
FAULTS = "/localcloud/faults"
DATA = Path(bezel_localcloud.__file__).parent / "data" / "price_list.csv"


@pytest.fixture
def project(tmp_path):
    new_project = Project(tmp_path)
    new_project.cloud.store.put("api", "cloudbilling.googleapis.com", {"state": "ENABLED"})
    yield new_project
    new_project.close()


def skus(project, path=RUN, **query):
    return {sku["skuId"]: sku for sku in project.ok("GET", path, **query).get("skus", [])}


def price(sku, version=-1, tier=-1):
    """(currency, units, nanos) of a SKU."""
    unit = sku["pricingInfo"][version]["pricingExpression"]["tieredRates"][tier]["unitPrice"]
    return unit["currencyCode"], unit["units"], unit["nanos"]


def sku_named(skus_by_id, description):
    (sku,) = [sku for sku in skus_by_id.values() if sku["description"] == description]
    return sku


def test_a_project_that_has_not_enabled_the_api_gets_no_price(project):
    project.cloud.store.put("api", "cloudbilling.googleapis.com", {"state": "DISABLED"})
    assert "has not been used" in project.refusal(403, "GET", RUN)["message"]


def test_every_service_lists_its_skus(project):
    services = project.ok("GET", "/cloudbilling/v1/services")["services"]
    assert [service["displayName"] for service in services] == ["Cloud Run", "Compute Engine"]
    for service in services:
        listed = skus(project, f"/cloudbilling/v1/{service['name']}/skus")
        assert listed
        assert {sku["category"]["serviceDisplayName"] for sku in listed.values()} == {service["displayName"]}
    assert project.refusal(404, "GET", "/cloudbilling/v1/services/0000-0000-0000/skus")


def test_pages_hold_every_sku_once(project):
    whole, token, seen = skus(project), "", []
    while True:
        page = project.ok("GET", RUN, pageSize="7", pageToken=token)
        seen += [sku["skuId"] for sku in page["skus"]]
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert sorted(seen) == sorted(whole)
    assert len(seen) == len(set(seen)) > 14
    project.refusal(400, "GET", COMPUTE, pageToken=project.ok("GET", RUN, pageSize="7")["nextPageToken"])


def test_a_price_of_tiers_and_a_price_of_a_fraction(project):
    requests = sku_named(skus(project), "Requests")
    tiers = requests["pricingInfo"][0]["pricingExpression"]["tieredRates"]
    assert [tier["startUsageAmount"] for tier in tiers] == [0, 2_000_000]
    assert (price(requests, tier=0), price(requests)) == (("USD", "0", 0), ("USD", "0", 400))
    assert requests["geoTaxonomy"]["type"] == "GLOBAL"
    chip = sku_named(skus(project, COMPUTE), "TpuV6e running in Tokyo")
    assert price(chip) == ("USD", "3", 240_000_000)
    assert chip["serviceRegions"] == ["asia-northeast1"]


def test_another_currency_is_converted_and_an_unknown_one_refused(project):
    chip = sku_named(skus(project, COMPUTE, currencyCode="EUR"), "TpuV6e running in Tokyo")
    assert price(chip) == ("EUR", "2", 916_000_000)
    assert chip["pricingInfo"][0]["currencyConversionRate"] == 0.9
    project.refusal(400, "GET", COMPUTE, currencyCode="XXX")


def test_a_time_range_shows_the_prices_of_then(project):
    name = "Nvidia L4 GPU running in Virginia"
    assert price(sku_named(skus(project, COMPUTE), name)) == ("USD", "0", 560_000_000)
    then = {"startTime": "2026-07-02T00:00:00Z", "endTime": "2026-07-31T00:00:00Z"}
    assert price(sku_named(skus(project, COMPUTE, **then), name)) == ("USD", "0", 600_000_000)
    turn = {"startTime": "2026-07-20T00:00:00Z", "endTime": "2026-08-01T05:00:00Z"}  # July still in Los Angeles
    assert len(sku_named(skus(project, COMPUTE, **turn), name)["pricingInfo"]) == 2
    before = {"startTime": "2024-07-02T00:00:00Z", "endTime": "2024-07-31T00:00:00Z"}
    assert skus(project, COMPUTE, **before) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-07-02T00:00:00Z", ""),
        ("2026-07-02T00:00:00Z", "2026-08-02T00:00:00Z"),
        ("2026-07-02T00:00:00Z", "2026-07-02T00:00:00Z"),
        ("2099-07-02T00:00:00Z", "2099-07-03T00:00:00Z"),
    ],
)
def test_a_time_range_that_cannot_be_is_refused(project, start, end):
    project.refusal(400, "GET", RUN, startTime=start, endTime=end)


@pytest.mark.slow
def test_a_fault_changes_the_price_of_the_skus_that_it_names(project):
    before = skus(project)
    project.ok("POST", FAULTS, {"kind": "price-changed", "parameters": {"sku": "NVIDIA L4*", "factor": "2"}})
    after = skus(project)
    changed = {sku["description"] for name, sku in after.items() if sku != before[name]}
    assert changed == {sku["description"] for sku in before.values() if sku["description"].startswith("NVIDIA L4")}
    assert price(sku_named(after, "NVIDIA L4 GPU with no zonal redundancy in us-east4")) == ("USD", "0", 373_400)
    project.ok("DELETE", FAULTS)
    assert skus(project) == before


@pytest.mark.slow
def test_a_fault_removes_the_skus_that_it_names(project):
    before = skus(project)
    gone = sku_named(before, "Requests")["skuId"]
    project.ok("POST", FAULTS, {"kind": "price-missing", "parameters": {"sku": gone}})
    assert skus(project).keys() == before.keys() - {gone}
    project.ok("POST", FAULTS, {"kind": "price-missing", "parameters": {}})
    assert skus(project) == {}


def test_every_price_of_the_list_has_a_date_and_a_source():
    with DATA.open() as file:
        rows = list(csv.DictReader(file))
    assert all(row["as_of"] and row["source"] and row["effective"] <= "2026-11" for row in rows)
    assert len({(row["sku"], row["effective"]) for row in rows}) == len(rows)


def test_the_list_is_no_copy_of_the_catalogue():
    with DATA.open() as file:
        listed = list(csv.DictReader(file))
    assert len(listed) != len(prices())
    assert {row["description"] for row in listed if row["source"].startswith("localcloud's own figure")}
