"""Quotas against localcloud's own APIs: the right service and unit, limit and use by place, and the need of a stack."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bezel.operations.quota.known import known_quotas, needs_of
from bezel.operations.quota.places import is_in
from bezel.operations.quota.quota import QuotaArguments, QuotaReport, QuotaRow, quota
from bezel.planner.base.hardware import leased_hardware
from bezel_base.errors import UserError
from bezel_catalog import accelerators
from tests.support.operations.project_cloud import OneProject, one_project
from tests.support.planner.v6e_stack import V6E4_MOE, lease_plan
from tests.support.rest.fake_google import Answer

pytestmark = pytest.mark.slow  # a cloud behind a socket each
L4 = "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion"
RTX = "NvidiaRtxPro6000GpuAllocNoZonalRedundancyPerProjectRegion"
V6E = "TPUV6EPerProjectPerZoneForTPUAPI"
L4_METRIC = "run.googleapis.com/nvidia_l4_gpu_allocation_no_zonal_redundancy"


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProject]:
    with one_project(tmp_path, monkeypatch) as project_cloud:
        yield project_cloud


def of(cloud: OneProject, **arguments: Any) -> QuotaReport:
    with cloud.context() as context:
        return quota(context, QuotaArguments(**arguments))


def rows(report: QuotaReport) -> dict[tuple[str, str], QuotaRow]:
    return {(row.quota, row.place): row for row in report.quotas}


def test_each_quota_has_its_limit_in_things_in_each_known_place(cloud: OneProject) -> None:
    report = of(cloud)
    rows_by_place = rows(report)
    assert (
        rows_by_place[L4, "us-east4"].limit,
        rows_by_place[L4, "us-east4"].unit,
        rows_by_place[L4, "us-east4"].thing,
    ) == (3, 1, "GPU")
    assert (rows_by_place[RTX, "us-central1"].limit, rows_by_place[RTX, "us-central1"].unit) == (3, 1000)
    assert rows_by_place["CpuAllocPerProjectRegion", "us-east4"].limit == 200
    assert rows_by_place["MemAllocPerProjectRegion", "us-east4"].limit == 400
    assert (rows_by_place[V6E, "us-east5-a"].limit, rows_by_place[V6E, "us-east5-a"].thing) == (8, "chip")
    assert rows_by_place[V6E, "us-east5-a"].service == "tpu.googleapis.com"
    assert rows_by_place["NVIDIA-L4-GPUS-per-project-region", "us-east4"].service == "compute.googleapis.com"
    assert "--dimensions=zone=us-east5-a" in rows_by_place[V6E, "us-east5-a"].gcloud_request
    assert "project=bezel-local" in report.link
    assert report.exit_code == 0
    assert cloud.changing_calls == []


def test_the_catalogues_hardware_is_all_there() -> None:
    ids = {each.quota.id for each in known_quotas()}
    for gpu in accelerators().values():
        assert {gpu.quota, gpu.quota_zonal_redundancy} <= ids
    for hardware in leased_hardware().values():
        assert {each.id for both in hardware.quotas.values() for each in both} <= ids


def test_the_use_has_monitoring_s_age_and_unknown_is_not_zero(cloud: OneProject) -> None:
    cloud.use(L4_METRIC, "us-east4", 2, ago=3600)
    rows_by_place = rows(of(cloud, region="us-east4"))
    assert (rows_by_place[L4, "us-east4"].used, rows_by_place[L4, "us-east4"].used_seconds_ago) == (2, 3600)
    assert rows_by_place["CpuAllocPerProjectRegion", "us-east4"].used is None
    assert "2 GPUs, 1h ago" in of(cloud, region="us-east4").text()


def test_a_stack_shows_the_worst_moment_of_its_deploy_beside_what_is_there(cloud: OneProject) -> None:
    scaling = {"maxInstanceCount": 2}
    template = {
        "scaling": scaling,
        "nodeSelector": {"accelerator": "nvidia-l4"},
        "gpuZonalRedundancyDisabled": True,
        "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}],
    }
    listed = [
        {"name": f"projects/p/locations/us-east4/services/{name}", "template": template}
        for name in ("bezel-l4-qat", "chat")
    ]
    cloud.server.routes.insert(
        0, lambda call: Answer(json={"services": listed}) if call.path.endswith("/services") else None
    )
    (note,) = of(cloud, stack="l4-qat").notes
    assert f"{L4}: at its worst moment this deploy may need 5 GPUs of the 3 GPUs allowed in us-east4" in note
    assert "2 GPUs of the old one, which serves until the new one does" in note
    scaling["maxInstanceCount"] = 1
    assert of(cloud, stack="l4-qat").notes == ()
    cloud.server.routes.insert(
        0, lambda call: Answer(403, {"error": {"code": 403}}) if call.path.endswith("/services") else None
    )
    (note,) = of(cloud, stack="l4-qat").notes
    assert "what an old revision and other services of us-east4 may hold is not judged: 403" in note


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        ({"region": "us-east5"}, {"us-east5", "us-east5-a", "us-east5-b"}),
        ({"zone": "us-east5-a"}, {"us-east5", "us-east5-a"}),
    ],
)
def test_a_region_has_its_zones_and_a_zone_its_region(
    cloud: OneProject, arguments: dict[str, str], places: set[str]
) -> None:
    assert {row.place for row in of(cloud, **arguments).quotas} == places


def test_a_stack_shows_what_it_may_need_and_only_that(cloud: OneProject) -> None:
    report = of(cloud, stack="l4-qat")
    assert {row.quota for row in report.quotas} == {L4, "CpuAllocPerProjectRegion", "MemAllocPerProjectRegion"}
    assert [row.needed for row in report.quotas if row.quota == L4] == [1]
    assert (report.exit_code, "SHORT" in report.text()) == (0, False)
    lease = of(cloud, stack="v6e4-moe", zone="us-east5-a")
    assert [(row.place, row.needed, row.thing) for row in lease.quotas] == [("us-east5-a", 4, "chip")]


def test_a_fallback_counts_beside_its_leases_in_its_own_region() -> None:
    fallback = {"accelerator": "nvidia-l4", "model": "gemma-4-12b-it-qat-w4a16", "region": "us-east4"}
    alone, both = (
        {(need.quota.id, need.place): need.amount for need in needs_of(lease_plan(V6E4_MOE | more))}
        for more in ({}, {"fallback": fallback})
    )
    assert {place for _, place in alone} == {"europe-west4-a", "us-east5-a"}
    assert both.items() > alone.items()
    added = {key: both[key] for key in both.keys() - alone}
    assert added[L4, "us-east4"] == 1
    assert {place for _, place in added} == {"us-east4"}


def test_a_quota_too_small_for_a_stack_fails_with_its_request(cloud: OneProject) -> None:
    info = {"applicableLocations": ["us-east4"], "details": {"value": "0"}}
    cloud.answers[L4] = Answer(json={"dimensionsInfos": [info], "metric": L4_METRIC})
    report = of(cloud, stack="l4-qat")
    (row,) = (row for row in report.quotas if row.quota == L4)
    assert (row.is_short, row.limit, report.exit_code) == (True, 0, 1)
    assert row.request == f"bezel quota request {L4} --amount 1 --region us-east4"
    assert "--preferred-value=1" in row.gcloud_request
    assert row.request in report.text()
    assert "1 GPU SHORT" in report.text()


def test_what_google_refuses_is_unknown_with_the_reason_and_the_rest_stays(cloud: OneProject) -> None:
    refusal = {"error": {"code": 403, "message": "denied", "status": "PERMISSION_DENIED"}}
    cloud.answers["timeSeries"] = Answer(403, refusal)
    cloud.answers[L4] = Answer(403, refusal)
    report = of(cloud, region="us-east4")
    rows_by_place = rows(report)
    assert (rows_by_place[L4, "us-east4"].limit, rows_by_place[L4, "us-east4"].is_unlimited) == (None, False)
    assert rows_by_place["CpuAllocPerProjectRegion", "us-east4"].limit == 200
    assert any("use is unknown: 403" in note for note in report.notes)
    assert any("gcloud services enable cloudquotas.googleapis.com" in note for note in report.notes)
    assert len(report.notes) == len({*report.notes})
    assert "unknown" in report.text()


def test_an_answer_without_any_limit_is_no_success(cloud: OneProject) -> None:
    assert of(cloud, region="us-east4").exit_code == 0
    refusal = {"error": {"code": 403, "message": "denied", "status": "PERMISSION_DENIED"}}
    cloud.server.routes.insert(0, lambda call: Answer(403, refusal) if "/quotaInfos/" in call.path else None)
    report = of(cloud, region="us-east4")
    assert {row.limit for row in report.quotas} == {None}
    assert report.exit_code == 1


def test_no_limit_is_told_apart_from_an_unknown_one(cloud: OneProject) -> None:
    info = {"applicableLocations": ["us-east4"], "details": {"value": "-1"}}
    cloud.answers[L4] = Answer(json={"dimensionsInfos": [info]})
    row = rows(of(cloud, region="us-east4"))[L4, "us-east4"]
    assert (row.limit, row.is_unlimited, row.is_short) == (None, True, False)


def test_without_a_project_nothing_is_asked(cloud: OneProject) -> None:
    cloud.environ.pop("GOOGLE_CLOUD_PROJECT")
    with pytest.raises(UserError, match="no Google Cloud project is named"):
        of(cloud)
    assert cloud.server.calls == []


def test_a_region_and_a_zone_at_once_are_refused(cloud: OneProject) -> None:
    with pytest.raises(UserError, match="a zone names its region"):
        of(cloud, region="us-east5", zone="us-east5-a")


@pytest.mark.parametrize("place", ["../x", "us-east5-a", "US-EAST5", "", "us-east5\n"])
def test_only_names_of_regions_are_taken(place: str) -> None:
    with pytest.raises(ValidationError):
        QuotaArguments(region=place)


@pytest.mark.parametrize(
    ("place", "region", "zone", "there"),
    [
        ("us-east5", None, None, True),
        ("us-east5-a", "us-east5", None, True),
        ("us-east4", "us-east5", None, False),
        ("us-east5", None, "us-east5-a", True),
        ("us-east5-b", None, "us-east5-a", False),
    ],
)
def test_a_place_belongs_to_its_region(place: str, region: str | None, zone: str | None, *, there: bool) -> None:
    assert is_in(place, region, zone) is there
