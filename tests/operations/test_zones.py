"""Zones of leased hardware against localcloud's own APIs: each column on its own, and no capacity requested."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from bezel.operations.context import Context
from bezel.operations.zones.hardware_names import hardware_named
from bezel.operations.zones.zones import ZoneOffer, Zones, ZonesArguments, zones
from bezel_base.errors import UserError
from tests.support.cli.tpu_cloud import OTHER, ZONE, Cloud, running
from tests.support.rest.fake_google import Answer

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


@pytest.mark.slow  # a whole cloud
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


@pytest.mark.slow
def test_a_refused_question_leaves_the_other_columns(cloud: Cloud) -> None:
    error = {"error": {"code": 403, "message": "ask the owner", "status": "PERMISSION_DENIED"}}
    cloud.server.routes.insert(0, lambda call: Answer(403, error) if "quotaInfos" in call.path else None)
    report = of("v6e4-moe", ZONE, OTHER)
    assert offers(report)[ZONE].quota == "? (403 PERMISSION_DENIED)"
    assert offers(report)[ZONE].usd_per_hour == "5.40"
    assert any("ask the owner" in note for note in report.notes)


@pytest.mark.slow
def test_any_accelerator_has_zones_or_regions_with_quota_and_price(cloud: Cloud) -> None:
    report = any_zones("any v6e-4", ZONE)
    assert [(each.zone, each.hardware, each.quota, each.usd_per_hour) for each in report.zones] == [
        (ZONE, "yes", "32", "5.40")
    ]
    by_place = offers(any_zones("nvidia-l4"))
    assert by_place["us-east4"].model_dump() == {
        "zone": "us-east4",
        "accelerator": "nvidia-l4",
        "hardware": "yes",
        "provisioning_model": "Cloud Run",
        "quota": by_place["us-east4"].quota,
        "usd_per_hour": "1.05",
    }
    assert by_place["us-east4"].quota.isdecimal()
    assert offers(of("l4-qat"))["us-east4"] == by_place["us-east4"]
    assert (by_place["us-central1"].hardware, by_place["us-central1-a"].accelerator) == (
        "on invitation",
        "g2-standard-96",
    )
    assert [call for call in cloud.server.calls if call.method != "GET"] == []


def any_zones(accelerator: str, *names: str, environ: Mapping[str, str] = os.environ) -> Zones:
    with Context(ROOT, environ, show=lambda _line: None) as context:
        return zones(context, ZonesArguments(accelerator=accelerator, zone=names))


def test_without_a_project_prices_are_shown_and_nothing_is_asked() -> None:
    report = any_zones("rtx pro 6000", environ={})
    assert {each.quota for each in report.zones} == {"not judged"}
    assert offers(report)["europe-west4"].usd_per_hour == "3.19"
    assert report.project is None
    assert "GOOGLE_CLOUD_PROJECT" in report.text()
    assert [each.zone for each in any_zones("v6e-4", "us-east5-a", environ={}).zones] == ["us-east5-a"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("any v6e-4", "v6e-4"),
        ("V6E 4", "v6e-4"),
        ("a TPU v6e_8", "v6e-8"),
        ("L4", "nvidia-l4"),
        ("NVIDIA RTX PRO 6000", "nvidia-rtx-pro-6000"),
        ("g2-standard-96", "g2-standard-96"),
    ],
)
def test_hardware_is_found_by_the_names_that_people_use(text: str, name: str) -> None:
    assert hardware_named(text) == name


@pytest.mark.parametrize("text", ["v6e-5", "any", "h100", "../v6e-4", "v6e-4/x", "x" * 100, "\0"])
def test_unknown_hardware_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(UserError, match="the catalogue has nvidia-l4"):
        hardware_named(text)
    with pytest.raises(UserError, match=r"did you mean nvidia-rtx-pro-6000\?"):
        hardware_named("nvidia-rtx-pro6000s")


def test_neither_stack_nor_accelerator_is_refused() -> None:
    with pytest.raises(UserError, match="neither a stack nor an accelerator"), Context(ROOT, {}) as context:
        zones(context, ZonesArguments())


@pytest.mark.parametrize("zone", ["../../../v1/projects", "us-east5", "US-EAST5-A", "us-east5-a/nodes", ""])
def test_only_names_of_zones_become_parts_of_addresses(zone: str) -> None:
    with pytest.raises(ValidationError):
        ZonesArguments(stack="v6e4-moe", zone=(zone,))
