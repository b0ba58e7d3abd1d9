"""Domain of a stack: what the project lacks for it stops a run before anything is declared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bezel.planner import PlanError, make_plan
from bezel_services.regions.domain import domain_problems
from bezel_services.regions.failure import address_failure_text
from tests.support.components.fake_engine import declare

if TYPE_CHECKING:
    from tests.support.components.fake_cloud_run import FakeRun

SETTINGS: dict[str, Any] = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}
ADDRESS = {"domain": "llm.acme.example", "zone": "acme"}
MINE = {"labels": {"stack": "dev"}, "managed": {"domains": ["llm.acme.example"]}}
OTHERS = {"labels": {"stack": "prod"}, "managed": {"domains": ["llm.acme.example"]}}
LEADING = {"name": "llm.acme.example.", "type": "A", "rrdatas": ["192.0.2.1"]}


def problems_of(address: dict[str, str] | None = ADDRESS, present: str = "", *, preview: bool = True) -> list[str]:
    settings = SETTINGS | ({"address": address} if address else {})
    plan = make_plan(settings, project="acme-llm", stack="dev")
    seen: list[str] = []
    declare(lambda: seen.extend(each.consequence for each in domain_problems(plan, present)), preview=preview)
    return seen


def test_all_that_a_project_lacks_for_a_domain_is_named(run: FakeRun) -> None:
    run.zone, run.certificates = None, [MINE, OTHERS]
    assert [text.partition(":")[0] for text in problems_of()] == [
        "the stack prod has this domain",
        "acme-llm has no such zone",
    ]
    assert len(problems_of({"domain": "llm.acme.example"})) == 1, "without a zone nothing is asked of it"
    assert problems_of(None) == []
    run.zone, run.certificates = {"dnsName": "acme.example."}, [MINE]
    assert problems_of() == []


@pytest.mark.parametrize(("present", "is_warned"), [("", True), ("https://llm.acme.example", False)])
def test_a_domain_that_leads_elsewhere_is_told_once(
    run: FakeRun, caplog: pytest.LogCaptureFixture, present: str, is_warned: bool
) -> None:
    run.records = [LEADING]
    assert problems_of(present=present) == []
    assert ("leads to 192.0.2.1 now" in caplog.text) is is_warned


@pytest.mark.parametrize("preview", [True, False])
def test_what_may_not_be_read_stops_no_deploy(run: FakeRun, caplog: pytest.LogCaptureFixture, preview: bool) -> None:
    run.certificates = None
    assert problems_of(preview=preview) == []
    assert ("llm.acme.example could not be checked: " in caplog.text) is preview


@pytest.mark.parametrize(("error", "is_denied"), [("googleapi: Error 403: denied", True), ("Error 409", False)])
def test_a_failing_part_of_an_address_says_what_serves_and_who_repairs(error: str, *, is_denied: bool) -> None:
    plan = make_plan(SETTINGS | {"address": ADDRESS}, project="acme-llm", stack="dev")
    assert plan.address is not None
    text = address_failure_text(plan.address, "acme-llm", [error])
    assert "answer at their own URLs" in text
    assert ("bezel init --domain llm.acme.example" in text) is is_denied
    assert ("correct what the error names" in text) is not is_denied


@pytest.mark.slow
def test_a_stack_without_its_zone_declares_nothing(run: FakeRun) -> None:
    from bezel_stacks.dispatch import deploy

    run.zone = None
    plan = make_plan(SETTINGS | {"address": ADDRESS}, project="acme-llm", stack="dev")
    with pytest.raises(PlanError, match="has no such zone"):
        declare(lambda: deploy(plan))
    run.zone = {"dnsName": "acme.example."}
    made = [each for each in declare(lambda: deploy(plan)).all if each.name.startswith("vllm-address-")]
    explained = {each.name for each in made if "vllm-address-explain-failure" in each.hooks}
    assert explained == {each.name for each in made} - {"vllm-address-check"}
