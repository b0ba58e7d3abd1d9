"""Zones of leased hardware against localcloud's own APIs: each column on its own, and no capacity requested."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from bezel.operations.context import Context
from bezel.operations.zones.zones import ZoneOffer, Zones, ZonesArguments, zones
from bezel_base.errors import UserError
from tests.support.cli.tpu_cloud import OTHER, ZONE, Cloud, running
from tests.support.rest.fake_google import Answer

pytestmark = pytest.mark.slow  # a whole cloud each
ROOT = Path(__file__).parents[2]


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cloud]:
    with running(tmp_path, monkeypatch, capsys) as zone_cloud:
        yield zone_cloud


def of(stack: str, *names: str) -> Zones:
    with Context(ROOT, show=lambda _line: None) as context:
        return zones(context, ZonesArguments(stack=stack, zone=names))


def offers(report: Zones) -> dict[str, ZoneOffer]:
    return {each.zone: each for each in report.zones}


def test_each_zone_has_hardware_quota_and_price_and_nothing_is_requested(cloud: Cloud) -> None:
    report = of("v6e4-moe")
    offer = offers(report)[ZONE]
    assert (offer.hardware, offer.provisioning_model, offer.quota, offer.usd_per_hour) == (
        "yes",
        "accepted",
        "32",
        "5.40",
    )
    assert offers(report)["southamerica-west1-a"].usd_per_hour is None
    assert "no API states capacity" in report.text()
    assert [call for call in cloud.server.calls if call.method != "GET"] == []


def test_a_refused_question_leaves_the_other_columns(cloud: Cloud) -> None:
    error = {"error": {"code": 403, "message": "ask the owner", "status": "PERMISSION_DENIED"}}
    cloud.server.routes.insert(0, lambda call: Answer(403, error) if "quotaInfos" in call.path else None)
    report = of("v6e4-moe", ZONE, OTHER)
    assert offers(report)[ZONE].quota == "? (403 PERMISSION_DENIED)"
    assert offers(report)[ZONE].usd_per_hour == "5.40"
    assert any("ask the owner" in note for note in report.notes)


def test_a_stack_without_a_lease_has_no_zones() -> None:
    with pytest.raises(UserError, match="leases nothing"):
        of("l4-qat")


@pytest.mark.parametrize("zone", ["../../../v1/projects", "us-east5", "US-EAST5-A", "us-east5-a/nodes", ""])
def test_only_names_of_zones_become_parts_of_addresses(zone: str) -> None:
    with pytest.raises(ValidationError):
        ZonesArguments(stack="v6e4-moe", zone=(zone,))
