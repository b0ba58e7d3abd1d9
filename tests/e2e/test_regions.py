"""Several regions behind one address under the real engine: each change is one `up`, and callers see nothing of it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.e2e.kill_points import KillHarness
from tests.support.e2e.regions import DOMAIN, OTHER_DOMAIN, ZONE, A, B, C, RegionsStack, changes, deploy_two
from tests.support.e2e.rehearsal import Rehearsal
from tests.support.e2e.steady_client import asking

ADDRESS = {"domain": DOMAIN, "zone": ZONE}
SERVICE = "bezel-l4-qat"


@pytest.fixture
def stack(rehearsal: Rehearsal) -> RegionsStack:
    """The stack before its first deploy."""
    made = RegionsStack(rehearsal)
    made.prepare(region=None, regions=[A, B], address=ADDRESS)
    return made


@pytest.fixture
def two(grounds: KillHarness, tmp_path: Path) -> Iterator[RegionsStack]:
    """The stack in service in two regions, deployed once for all tests."""
    made = grounds.copy_with_cloud("regions", deploy_two, tmp_path / "two")
    yield RegionsStack(made)
    made.stop_cloud()


@pytest.mark.wide
def test_regions_come_and_go_and_services_are_renamed_under_callers(stack: RegionsStack) -> None:
    """The first region, which answers them, is removed; another one is added; and the services get another name."""
    made = stack.deploy()
    order = (f"service-{A}-service", f"benchmark-{A}", f"service-{B}-service", "address-ip")
    places = [made.text.index(f" vllm-{name} created") for name in order]
    assert places == sorted(places)
    outputs = stack.rehearsal.outputs()
    assert (outputs["url"], outputs["regions"]) == (f"https://{DOMAIN}", [A, B])
    assert outputs["address"]["ip"] == stack.balancers()["balancers"][0]["address"]
    with asking(stack.client()) as client:
        run = stack.deploy(regions=[B, C], service_name="answers")
    client.saw_nothing()
    assert {f"deleted vllm-benchmark-{A}", f"created vllm-benchmark-{C}"} <= changes(run)
    ends = [run.text.index(f" vllm-{name} deleted") for name in (f"drain-{A}", f"service-{A}-service")]
    assert ends == sorted(ends), "requests have time to end before their service is deleted"
    assert stack.services() == {(B, "answers"), (C, "answers")}
    assert stack.serving_regions() == {B, C}
    assert stack.rehearsal.outputs()["address"] == outputs["address"], "callers keep their way"
    stack.destroy()


@pytest.mark.wide
def test_another_domain_takes_over_under_callers_of_the_former(two: RegionsStack) -> None:
    """They are let in until the balancer leaves their domain, at the end; the next deploy ends what is left of it."""
    with asking(two.client()) as client:
        moved = two.up(**{"address.domain": OTHER_DOMAIN})
    assert moved.code == 0, moved.text
    answers = client.statuses
    served = answers[: next((place for place, each in enumerate(answers) if each != 200), len(answers))]
    assert len(served) > 10, answers
    assert not [each for each in answers if isinstance(each, int) and each != 200], "no caller was refused"
    fresh = two.client(OTHER_DOMAIN)
    assert two.describe(A)["customAudiences"] == [f"https://{each}" for each in (OTHER_DOMAIN, DOMAIN)]
    two.deploy()
    assert two.describe(A)["customAudiences"] == [f"https://{OTHER_DOMAIN}"]
    assert fresh.ask_once() == 200


@pytest.mark.wide
def test_one_region_becomes_several_and_one_again(rehearsal: Rehearsal) -> None:
    """Its service is never made again, wherever its region stands in the list."""
    one = RegionsStack(rehearsal)
    one.prepare(address=ADDRESS)
    one.deploy()
    uid = one.describe(A)["uid"]
    with asking(one.client()) as client:
        grown = one.deploy(region=None, regions=[B, A])
        shrunk = one.deploy(regions=None, region=A)
    client.saw_nothing()
    assert not any(A in each for each in changes(grown) | changes(shrunk))
    assert one.describe(A)["uid"] == uid
    two_again = one.deploy(region=None, regions=[A, B])
    last = one.deploy(regions=None, region=B)
    assert f"created vllm-service-{B}-service" in changes(two_again)
    assert f"deleted vllm-service-{A}-service" in changes(last)
    assert one.services() == {(B, SERVICE)}


@pytest.mark.wide
def test_a_failure_in_the_first_region_leaves_the_next_one_as_it_is(two: RegionsStack) -> None:
    two.deploy(rollout="gated")
    before = {region: two.describe(region)["latestReadyRevision"] for region in (A, B)}
    two.fault("engine-death", after_requests=3)
    failed = two.up(**{"vllm.max-num-seqs": 7})
    assert failed.code == 1
    assert f"{B} waits for {A}, which comes first: nothing of the service {SERVICE} is changed there" in failed.text
    assert two.describe(B)["latestCreatedRevision"] == before[B]
    assert two.describe(A)["traffic"][0]["revision"] == before[A].rpartition("/")[2]
    two.mend()
    two.deploy()
    after = {region: two.describe(region)["latestReadyRevision"] for region in (A, B)}
    assert all(after[region] != before[region] for region in (A, B))


@pytest.mark.wide
def test_a_region_without_gpus_is_named_and_can_be_left_out(stack: RegionsStack) -> None:
    """Without quota a preview refuses it, or leaves it out where it is optional; without capacity `up` says how to."""
    stack.fault("gpu-exhausted", region=B)
    failed = stack.up(optional_regions=[B])
    assert failed.code == 1
    assert f"{B} is optional: to deploy without it now, take it out of bezel:regions" in failed.text
    stack.deploy(regions=[A], optional_regions=None)
    assert (stack.services(), stack.serving_regions()) == ({(A, SERVICE)}, {A})
    stack.mend()
    stack.remove_quota(B)
    refused = stack.up(regions=[A, B])
    assert refused.code == 1
    assert f"this project has 0 in {B}" in refused.text
    assert "Traceback" not in refused.text
    left_out = stack.up(optional_regions=[B])
    assert left_out.code == 0, left_out.text
    assert f"{B} is left out: " in left_out.text
    assert changes(left_out) == set()
    assert stack.services() == {(A, SERVICE)}


@pytest.mark.wide
def test_regions_that_keep_an_instance_report_their_health(two: RegionsStack) -> None:
    two.deploy(scaling={"min_instances": 1}, **{"cost.max_idle_hourly_usd": 5})
    container = two.describe(B)["template"]["containers"][0]
    assert container["readinessProbe"]["httpGet"]["path"] == "/health"
    assert json.loads(two.rehearsal.local("outputs", "l4-qat").text)["plan"]["address"]["failover"] == "service health"


@pytest.mark.long
def test_the_gateway_of_leases_is_renamed_and_gets_another_domain(rehearsal: Rehearsal) -> None:
    leased = RegionsStack(rehearsal, "v6e1-12b")
    leased.prepare(address=ADDRESS, **{"cost.max_lease_usd": 7})
    leased.deploy()
    outputs = rehearsal.outputs("v6e1-12b")
    assert (outputs["url"], list(outputs["urls"])) == (f"https://{DOMAIN}", ["us-east5"])
    with asking(leased.client()) as client:
        renamed = leased.deploy(service_name="tpu")
    client.saw_nothing()
    assert leased.services() == {("us-east5", "tpu")}
    assert not any("lease" in each for each in changes(renamed))
    moved = leased.up(**{"address.domain": OTHER_DOMAIN})
    assert moved.code == 0, moved.text
    assert leased.client(OTHER_DOMAIN).ask_once() == 200
    leased.destroy()
