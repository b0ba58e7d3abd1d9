"""Check-up of a stack in several regions with an address: each region's quota and place, the zone, the certificate."""

from typing import Any

import pytest

from bezel.operations.doctor.check import Check
from tests.operations.test_doctor import Google, google, refusal  # noqa: F401 - the fixture
from tests.support.operations.deployed import address_output, service_resource, state_of
from tests.support.rest.fake_google import Answer

L4 = """
config:
  gcp:project: acme
  bezel:model: gemma-4-12b-it-qat-w4a16
  bezel:accelerator: nvidia-l4
  bezel:regions: [us-east4, europe-west4]
  bezel:optional_regions: [europe-west4]
  bezel:address: {domain: llm.acme.example, zone: acme-example}
  bezel:cost: {max_idle_hourly_usd: 1}
  bezel:weights: {bucket: acme-models, regional_buckets: true}
"""
ZONE = {"name": "acme-example", "dnsName": "acme.example.", "visibility": "public"}


@pytest.fixture
def spread(google: Google) -> Google:  # noqa: F811 - a fixture
    """A project whose one stack has two regions and an address, not deployed yet."""
    google.write("one", L4)
    google.enabled += ["certificatemanager", "dns"]
    google.changed["managedZones"] = Answer(json=ZONE)
    return google


def rows(checks: list[Check]) -> list[tuple[str, str]]:
    return [(each.subject, each.state) for each in checks]


@pytest.mark.slow
def test_each_region_is_checked_and_an_optional_one_warns(spread: Google) -> None:
    limits = [{"applicableLocations": [place], "details": {"value": value}} for place, value in
              (("us-east4", str(1 << 50)), ("europe-west4", "0"))]  # fmt: skip
    spread.changed["/CLOUD_QUOTAS/"] = Answer(json={"dimensionsInfos": limits, "metric": "m"})
    report = spread.doctor()
    quotas = [each for each in report.checks if each.area == "quotas"]
    assert {(each.state, "europe-west4" in each.detail) for each in quotas} == {("ok", False), ("warning", True)}
    assert "leaves out europe-west4, which is optional" in quotas[-1].detail
    assert report.exit_code == 0
    assert [each.detail.partition(";")[0] for each in report.checks if each.area == "regions"] == [
        "the catalogue lists nvidia-l4 in us-east4",
        "the catalogue lists nvidia-l4 in europe-west4",
    ]
    subjects = {each.subject for each in report.checks if each.area == "weights"}
    assert {f"location of gs://acme-models-{region}, one" for region in ("us-east4", "europe-west4")} <= subjects
    assert rows([each for each in report.checks if each.area == "address"]) == [
        ("zone acme-example", "ok"),
        ("one", "ok"),
    ]
    spread.write("one", L4.replace("  bezel:optional_regions: [europe-west4]\n", ""))
    assert spread.doctor().exit_code == 1, "a required region without quota"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (refusal(404), "acme has no such zone"),
        (Answer(json=ZONE | {"dnsName": "other.example."}), "llm.acme.example is not below that"),
        (Answer(json=ZONE | {"visibility": "private"}), "it is private"),
    ],
)
def test_zone_that_cannot_hold_the_records_is_a_problem(spread: Google, answer: Answer, detail: str) -> None:
    spread.changed["managedZones"] = answer
    first, *_ = spread.of("address")
    assert (first.state, first.subject) == ("problem", "zone acme-example")
    assert detail in first.detail
    assert first.repair is not None
    assert "gcloud dns managed-zones list --project=acme" in first.repair


@pytest.mark.slow
def test_deployed_address_shows_why_it_does_not_answer(spread: Google) -> None:
    managed: dict[str, Any] = {"state": "FAILED", "provisioningIssue": {"reason": "RATE_LIMITED", "details": "Many."}}
    spread.changed["certificates/"] = Answer(json={"managed": managed})
    spread.cloud.keep("one", state_of(service_resource(), url="https://llm.acme.example", address=address_output()))
    _, reach, certificate = spread.of("address", stack="one")
    assert (reach.state, certificate.state) == ("warning", "problem")
    assert "no load balancer of localcloud listens for llm.acme.example" in reach.detail
    assert certificate.detail == "failed: Many"
    assert "Google gave up" in str(certificate.repair)
