"""Distance of the weights: near, far or not judged, and what a start pays for reading them from there."""

from decimal import Decimal

import pytest

from bezel.planner.base.money import Priced, Unpriced
from bezel.planner.cost.weights_transfer import BucketPlace, Transfer
from bezel_catalog.loader import region_names
from bezel_catalog.storage_locations import location_kind, location_regions, storage_locations, storage_transfers

REGION = "us-east4"


def transfer(location: str, *placed_in: str, regions: tuple[str, ...] = (REGION,), servers: int = 1) -> Transfer:
    return Transfer("models", BucketPlace(location, placed_in), regions, 8.0, servers)


@pytest.mark.parametrize(
    ("location", "placed_in", "free"),
    [
        ("US-EAST4", (), True),
        ("us-east4", (), True),
        ("US", (), False),  # a multi-region is near, and its reads are charged
        ("US", ("US-EAST4", "US-EAST5"), True),
        ("us", ("us-west1", "us-east4"), True),
    ],
)
def test_a_bucket_that_holds_its_data_in_the_region_is_near(location, placed_in, free):
    transfers = transfer(location, *placed_in)
    assert transfers.far == ()
    assert transfers.warning() == ""
    assert (transfers.usd == Priced(Decimal(0))) is free
    assert free or isinstance(transfers.usd, Unpriced)


@pytest.mark.parametrize(
    ("location", "placed_in", "usd"),
    [
        ("US-CENTRAL1", (), "0.16"),
        ("NORTHAMERICA-NORTHEAST1", (), "0.16"),
        ("NAM4", (), "0.16"),
        ("US", ("US-WEST1", "US-CENTRAL1"), "0.16"),
        ("EUROPE-WEST4", (), None),
        ("EU", (), None),
        ("ASIA", (), None),
        ("EUR4", (), None),
        ("ASIA1", (), None),
        ("EU", ("EUROPE-WEST1", "EUROPE-WEST4"), None),
        ("SOUTHAMERICA-EAST1", (), None),
    ],
)
def test_a_bucket_elsewhere_is_far_with_its_price_or_an_unknown_one(location, placed_in, usd):
    transfers = transfer(location, *placed_in)
    assert transfers.far == (REGION,)
    assert f"gs://models is in {location.lower()}" in transfers.warning()
    assert "8.0 GiB" in transfers.warning()
    if usd is None:
        assert isinstance(transfers.usd, Unpriced)
        assert "an unknown amount" in transfers.warning()
    else:
        assert transfers.usd == Priced(Decimal(usd))
        assert f"costs {usd} USD" in transfers.warning()


@pytest.mark.parametrize("place", [None, BucketPlace("MARS1"), BucketPlace("")])
def test_a_place_that_is_not_known_is_not_judged_and_has_no_price(place):
    transfers = Transfer("models", place, (REGION,), 8.0, 1)
    assert transfers.far is None
    assert transfers.warning() == ""
    assert isinstance(transfers.usd, Unpriced)


def test_every_region_is_near_itself_and_far_from_every_other():
    regions = sorted(region_names())
    for region in regions:
        assert transfer(region.upper(), regions=(region,)).far == ()
        others = tuple(other for other in regions if other != region)
        assert transfer(region, regions=others).far == others


def test_every_location_of_several_regions_is_near_its_own_regions_only():
    assert set(storage_locations()) == {"US", "EU", "ASIA", "NAM4", "EUR4", "EUR5", "EUR7", "EUR8", "ASIA1"}
    for place in storage_locations().values():
        assert set(place.regions) <= region_names()
        assert (len(place.regions) == 2) is (place.kind == "dual-region")
        near = [name for name in sorted(region_names()) if transfer(place.id, regions=(name,)).far == ()]
        assert near == sorted(place.regions)
        assert location_kind(place.id.lower()) == place.kind
    assert location_kind("MARS1") is None
    assert location_regions("MARS1") == ()


def test_a_transfer_is_priced_within_its_area_only():
    for area in storage_transfers().values():
        inside = [region for region in sorted(region_names()) if area.holds(region)]
        assert len(inside) > 1
        for source in sorted(region_names() - {inside[0]}):
            is_priced = isinstance(transfer(source, regions=(inside[0],)).usd, Priced)
            assert is_priced == area.holds(source)


def test_the_machines_of_a_lease_each_read_and_the_dearest_zone_counts():
    transfers = transfer("us-east5", regions=("us-east5", "us-east1"), servers=3)
    assert transfers.far == ("us-east1",)
    assert transfers.usd == Priced(Decimal("0.48"))
    assert isinstance(transfer("us-east5", regions=("us-east5", "europe-west4")).usd, Unpriced)


def test_a_description_of_cloud_storage_is_read_with_its_two_regions():
    described = {"location": "US", "customPlacementConfig": {"dataLocations": ["US-EAST4", "US-WEST1"]}}
    assert BucketPlace.of(described) == BucketPlace("US", ("US-EAST4", "US-WEST1"))
    assert BucketPlace.of({"location": "EU"}) == BucketPlace("EU")
