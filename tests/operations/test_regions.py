"""Operations of a stack in several regions: which of its services each reads or asks, and that it says so."""

from typing import Any

import pytest

from bezel.operations.bench.run_bench import RunArguments
from bezel.operations.bench.target import options_of
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.logs.logs import LogsArguments, logs
from bezel.operations.metrics.metrics import MetricsArguments, metrics
from bezel.operations.query.query import QueryArguments, query
from bezel.operations.rollback.passed import passed_revisions
from bezel.operations.rollback.rollback import RollbackArguments, plan_rollback
from bezel.operations.status.status import StackStatus, Status, StatusArguments, status
from bezel_base.errors import UserError
from tests.support.operations.deployed import (
    SERVICE,
    Deployed,
    address_output,
    further_resource,
    live_service,
    logged_request,
    service_resource,
    state_of,
)
from tests.support.operations.log_server import LogServer
from tests.support.operations.model_server import ModelServer, piece, usage
from tests.support.operations.rolled_stack import HEALTH
from tests.support.rest.fake_google import Answer

FAR = "europe-west4"
FAR_SERVICE = SERVICE.replace("us-east4", FAR)
ADDRESS = "https://llm.acme.example"


def deploy_two(cloud: Deployed, *, address: bool = True, near_url: str = "https://llm.example") -> Deployment:
    """A stack of two regions whose services run, the second one asleep."""
    near = {**service_resource(), "outputs": {"uri": near_url}}
    outputs: dict[str, Any] = {"regions": ["us-east4", FAR]} | ({"address": address_output()} if address else {})
    state = state_of(further_resource(FAR), near, url=ADDRESS if address else near_url, model="gemma", **outputs)
    cloud.keep("dev", state)
    scaling = {"minInstanceCount": 1, "maxInstanceCount": 1}
    cloud.live[SERVICE] = live_service(scaling=scaling)
    cloud.live[FAR_SERVICE] = live_service(name=FAR_SERVICE)
    return cloud.context.deployment("dev")


def test_first_region_is_the_first_one_of_the_deployed_list(cloud: Deployed) -> None:
    deployment = deploy_two(cloud)
    assert dict(deployment.urls) == {"us-east4": "https://llm.example", FAR: f"https://llm-{FAR}.example"}
    assert deployment.service is not None
    assert (deployment.service.id, deployment.url) == (SERVICE, ADDRESS)
    far = deployment.of_one_region(FAR)
    assert far.service is not None
    assert (far.service.id, far.url) == (FAR_SERVICE, f"https://llm-{FAR}.example")
    assert deployment.of_one_region(None).url == "https://llm.example"


def test_region_of_no_service_is_refused_with_those_that_there_are(cloud: Deployed) -> None:
    with pytest.raises(UserError, match=r"(?s)asia-east1.*no service there.*us-east4, europe-west4"):
        deploy_two(cloud).of_one_region("asia-east1")
    cloud.keep("dev", state_of(service_resource(), url="https://tag---llm.example"))
    one = cloud.context.deployment("dev")
    assert one.of_one_region("us-east4").url == "https://tag---llm.example", "nothing changes for one region"


def test_logs_are_of_all_regions_or_of_one(cloud: Deployed) -> None:
    deploy_two(cloud)
    log = LogServer(cloud)
    log.add("near", 1)
    log.add("far", 2, region=FAR)
    log.add("of another service's region", 3, region="asia-east1")
    both = logs(cloud.context, LogsArguments(stack="dev"))
    assert [(line.region, line.text) for line in both.lines] == [("us-east4", "near"), (FAR, "far")]
    assert f"[container] {FAR} llm-00002-abc: far" in both.text()
    far = logs(cloud.context, LogsArguments(stack="dev", region=FAR))
    assert ([line.text for line in far.lines], far.revision) == (["far"], "llm-00002-abc")
    assert f"[container] {FAR}" not in far.text()


def test_metrics_are_of_one_region_and_say_so(cloud: Deployed) -> None:
    deploy_two(cloud)
    far = metrics(cloud.context, MetricsArguments(stack="dev", region=FAR))
    assert (far.url, far.is_read) == (f"https://llm-{FAR}.example", False)
    assert far.notes[-1] == f"of {FAR} alone; --region reads another region: us-east4"


def ask(cloud: Deployed, **arguments: Any) -> Any:
    """The answer of a stack of two regions whose first one's server is real."""
    server = ModelServer(cloud, simulated=False)
    server.streams(piece("Red.", finish_reason="stop"), usage(9, 4))
    deploy_two(cloud, near_url=cloud.server.url, **arguments)
    return query(cloud.context, QueryArguments(stack="dev", prompt="Name colours."))


def test_region_with_an_instance_is_asked_where_another_one_sleeps(cloud: Deployed) -> None:
    answer = ask(cloud)
    assert answer.answer == "Red."
    (note,) = answer.notes
    asleep = f"the address may lead to {FAR}, where no instance is known to run"
    assert note == f"asked in us-east4 alone: {asleep}; --wake asks the address"


def test_first_region_is_asked_without_an_address(cloud: Deployed) -> None:
    answer = ask(cloud, address=False)
    assert (answer.answer, answer.notes) == ("Red.", ())


def test_region_answers_in_place_of_an_address_that_does_not(cloud: Deployed) -> None:
    server = ModelServer(cloud, simulated=False)
    server.streams(piece("Red.", finish_reason="stop"), usage(9, 4))
    deploy_two(cloud, near_url=cloud.server.url)
    cloud.live[FAR_SERVICE] = cloud.live[SERVICE]
    answer = query(cloud.context, QueryArguments(stack="dev", prompt="Name colours."))
    assert answer.answer == "Red."
    (note,) = answer.notes
    assert note.startswith(f"{ADDRESS} does not answer: no load balancer of localcloud listens for llm.acme.example;")
    assert "the service in us-east4 is asked in its place" in note
    assert "_acme-challenge.llm.acme.example. CNAME proof.authorize.example." in note
    refused = query(cloud.context, QueryArguments(stack="dev", prompt="Name colours.", region="us-east4"))
    assert refused.notes == ()


def test_nothing_is_asked_where_no_region_has_an_instance(cloud: Deployed) -> None:
    deploy_two(cloud)
    cloud.live[SERVICE] = live_service()
    cloud.server.routes.insert(0, lambda call: Answer(json={}) if call.path.endswith("/timeSeries") else None)
    answer = query(cloud.context, QueryArguments(stack="dev", prompt="Name colours."))
    assert not answer.is_asked
    assert "us-east4: Cloud Monitoring has no sample" in answer.notes[0]


def status_of(cloud: Deployed) -> StackStatus:
    (stack_status,) = status(cloud.context, StatusArguments(stack="dev")).stacks
    return stack_status


def add_certificate(cloud: Deployed, state: str) -> None:
    """Give the address a certificate in a state."""
    answer = Answer(json={"managed": {"state": state}})
    cloud.server.routes.insert(0, lambda call: answer if call.path.startswith("/certificatemanager/") else None)


def test_status_has_a_row_for_each_region_and_their_sums(cloud: Deployed) -> None:
    deploy_two(cloud)
    add_certificate(cloud, "ACTIVE")
    cloud.requests = [logged_request(200), logged_request(200, region=FAR), logged_request(499, 20.0, region=FAR)]
    result = status_of(cloud)
    assert (result.verdict, result.reasons, result.url) == ("ready", (), ADDRESS)
    assert [(each.region, each.verdict, each.url) for each in result.regions] == [
        ("us-east4", "ready", "https://llm.example"),
        (FAR, "ready", f"https://llm-{FAR}.example"),
    ]
    near, far = (each.usd_per_hour for each in result.regions)
    assert near is not None
    assert far is not None
    assert result.usd_per_hour == near + far
    assert [each.usd_per_hour_idle for each in result.regions] == [near, 0]
    assert result.usd_per_hour_idle == near
    assert result.calls is not None
    assert (result.calls.succeeded, result.calls.abandoned) == (2, 1)
    assert result.certificate is not None
    assert result.certificate.state == "active"
    text = Status(stacks=(result,)).text()
    assert "certificate  active" in text
    assert f"{FAR}  ready    llm-00002-abc 100%  0 of 2" in text


def test_region_that_is_gone_makes_the_stack_degraded(cloud: Deployed) -> None:
    deploy_two(cloud)
    add_certificate(cloud, "ACTIVE")
    del cloud.live[FAR_SERVICE]
    result = status_of(cloud)
    gone = f"{FAR}: Cloud Run has no {FAR_SERVICE}, which the state names"
    assert (result.verdict, result.reasons) == ("degraded", (gone,))
    del cloud.live[SERVICE]
    assert status_of(cloud).verdict == "gone"


@pytest.mark.parametrize(
    ("state", "verdict"), [("PROVISIONING", "deploying"), ("FAILED", "failed"), ("ACTIVE", "ready")]
)
def test_address_without_a_certificate_is_no_endpoint(cloud: Deployed, state: str, verdict: str) -> None:
    deploy_two(cloud)
    add_certificate(cloud, state)
    cloud.requests = [logged_request(200), logged_request(200, region=FAR)]
    result = status_of(cloud)
    assert result.verdict == verdict
    assert any("certificate of the address" in reason for reason in result.reasons) == (verdict != "ready")


def test_one_region_has_no_rows_of_regions(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource(), url="https://llm.example"))
    cloud.live[SERVICE] = live_service()
    result = status_of(cloud)
    assert (result.regions, result.certificate) == ((), None)
    assert "region" not in Status(stacks=(result,)).text()


def test_rollback_of_several_regions_names_one(cloud: Deployed) -> None:
    deploy_two(cloud)
    with pytest.raises(UserError, match=r"(?s)--region.*`bezel rollback dev --region us-east4`"):
        plan_rollback(cloud.context, RollbackArguments(stack="dev"))


def test_checks_of_another_region_passed_none_of_its_revisions(cloud: Deployed) -> None:
    passed = [
        {
            "urn": f"urn:pulumi:dev::bezel::{HEALTH}::health-{number}",
            "type": HEALTH,
            "outputs": {"service": service, "passed": [{"revision": f"llm-{number}"}]},
        }
        for number, service in enumerate((SERVICE, FAR_SERVICE))
    ]
    cloud.keep("dev", state_of(service_resource(), further_resource(FAR), *passed))
    deployment = cloud.context.deployment("dev")
    assert list(passed_revisions(deployment.of_one_region(FAR))) == ["llm-1"]
    assert list(passed_revisions(deployment.of_one_region("us-east4"))) == ["llm-0"]


def test_load_on_an_address_starts_no_instance_of_another_region(cloud: Deployed) -> None:
    deploy_two(cloud)
    cloud.server.routes.insert(0, lambda call: Answer(json={}) if call.path.endswith("/timeSeries") else None)
    options = {"stack": "dev", "out": "run.json"}
    with pytest.raises(UserError, match="in us-east4 only, and its address leads to others"):
        options_of(cloud.context, RunArguments.model_validate(options))
    assert options_of(cloud.context, RunArguments.model_validate({**options, "wake": True})) == ["--stack", "dev"]
