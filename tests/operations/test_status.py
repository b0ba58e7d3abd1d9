"""Status of stacks: the verdict follows from what Google answers now, and an unknown figure is null."""

from decimal import Decimal
from typing import Any

import pytest

from bezel.operations.context import NotDeployedError
from bezel.operations.status.status import StackStatus, StatusArguments, status
from bezel.operations.weights.weights_place import weights_line
from bezel.rest import ApiError
from tests.support.operations.deployed import (
    SERVICE,
    Deployed,
    further_resource,
    live_service,
    service_inputs,
    service_resource,
    state_of,
)
from tests.support.rest.fake_google import ACCESS_TOKEN, Answer

FAILED = {"state": "CONDITION_FAILED", "message": "The user-provided container failed to start."}


def of(cloud: Deployed, stack: str = "dev") -> StackStatus:
    (stack_status,) = status(cloud.context, StatusArguments(stack=stack)).stacks
    return stack_status


def test_a_service_that_is_ready_is_shown_with_its_revision_age_and_price(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource(), url="https://llm.example", model="gemma"))
    cloud.live[SERVICE] = live_service()
    stack_status = of(cloud)
    assert (stack_status.verdict, stack_status.reasons, stack_status.url, stack_status.model) == (
        "ready",
        (),
        "https://llm.example",
        "gemma",
    )
    assert [(revision.name, revision.percent) for revision in stack_status.revisions] == [("llm-00002-abc", 100)]
    assert (
        stack_status.age_seconds,
        stack_status.expires_at,
        stack_status.min_instances,
        stack_status.max_instances,
    ) == (3600, "2026-12-31", 0, 1)
    assert (stack_status.usd_per_hour, stack_status.usd_per_hour_idle) == (Decimal("1.04652"), Decimal(0))
    # Cloud Run bills by instance, and how long instances ran is not in the service.
    assert stack_status.usd_so_far is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("live", "verdict", "reason"),
    [
        (live_service(terminalCondition=FAILED), "failed", "The user-provided container failed to start."),
        (live_service(terminalCondition={"state": "CONDITION_RECONCILING"}), "deploying", "CONDITION_RECONCILING"),
        (live_service(terminalCondition={}), "deploying", "no condition yet"),
        (None, "gone", f"Cloud Run has no {SERVICE}, which the state names"),
    ],
)
def test_a_service_that_is_not_ready_is_shown_with_the_reason(
    cloud: Deployed, live: Any, verdict: str, reason: str
) -> None:
    cloud.keep("dev", state_of(service_resource()))
    cloud.live |= {} if live is None else {SERVICE: live}
    cloud.requests = []
    report = status(cloud.context, StatusArguments(stack="dev"))
    assert (report.stacks[0].verdict, report.stacks[0].reasons) == (verdict, (reason,))
    assert report.exit_code == 1


def test_a_run_that_ended_in_the_middle_of_an_operation_is_shown_first(cloud: Deployed) -> None:
    state = state_of(service_resource())
    state["checkpoint"]["latest"]["pending_operations"] = [{"type": "creating"}]
    cloud.keep("dev", state)
    cloud.live[SERVICE] = live_service()
    assert of(cloud).verdict == "unfinished"


def test_an_accelerator_without_a_price_has_an_unknown_price(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource(location="mars-north1")))
    cloud.live[SERVICE] = live_service()
    report = status(cloud.context, StatusArguments(stack="dev"))
    assert report.stacks[0].usd_per_hour is None
    assert "unknown per hour" in report.text()


def test_all_stacks_with_a_service_are_listed_and_empty_ones_are_not(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource()))
    cloud.keep("prod", state_of(service_resource()))
    cloud.keep("empty", state_of())
    cloud.keep("dev", state_of(service_resource())).with_name("dev.json.bak").write_text("{}")
    cloud.live[SERVICE] = live_service()
    report = status(cloud.context, StatusArguments(stack=None))
    assert [stack.stack for stack in report.stacks] == ["dev", "prod"]
    assert len(report.text().splitlines()) == 3


def test_a_refusal_of_google_is_an_error_and_no_status(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource()))
    message = "Permission 'run.services.get' denied on resource"
    cloud.live[SERVICE] = Answer(403, {"error": {"code": 403, "message": message, "status": "PERMISSION_DENIED"}})
    with pytest.raises(ApiError, match=r"run\.services\.get") as refused:
        of(cloud)
    assert ACCESS_TOKEN not in str(refused.value)


def test_a_stack_that_was_never_deployed_is_refused_with_a_similar_name(cloud: Deployed) -> None:
    cloud.keep("l4-qat", state_of())
    with pytest.raises(NotDeployedError, match="did you mean l4-qat"):
        of(cloud, "l4-qta")


def test_the_server_itself_gets_no_request(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource(), url=cloud.server.url))
    cloud.live[SERVICE] = live_service()
    of(cloud)
    asked = {call.path for call in cloud.server.calls}
    assert asked == {
        f"/run/v2/{SERVICE}", f"/run/v2/{SERVICE}:getIamPolicy", "/monitoring/v3/projects/acme/timeSeries",
        "/logging/v2/entries:list",
    }  # fmt: skip


def test_a_missing_state_suggests_a_deploy_or_a_file_to_write(cloud: Deployed) -> None:
    """A stack with a file is to be deployed; without one, its file is to be written."""
    (cloud.folder / "Pulumi.l4-e2b.yaml").write_text("config: {}\n")
    with pytest.raises(NotDeployedError, match="deploy it: `bezel deploy l4-e2b`, on localcloud `make"):
        status(cloud.context, StatusArguments(stack="l4-e2b"))
    with pytest.raises(NotDeployedError, match=r"write Pulumi\.nope\.yaml") as refused:
        status(cloud.context, StatusArguments(stack="nope"))
    assert "bezel deploy" not in str(refused.value)


def test_a_file_outside_of_the_states_is_no_stack(cloud: Deployed) -> None:
    cloud.keep("../../../../outside", state_of(service_resource()))
    assert (cloud.folder / "outside.json").is_file()
    with pytest.raises(NotDeployedError, match="a stack's name has"):
        of(cloud, "../../../../outside")


def test_the_minimum_of_instances_is_the_services_or_its_templates(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource()))
    cloud.live[SERVICE] = live_service(template={"scaling": {"minInstanceCount": 1}}, scaling={"minInstanceCount": 0})
    assert of(cloud).min_instances == 1


HOUR = Decimal("1.04652")
OLD = f"{SERVICE}/revisions/llm-00001-old"


def running(**changes: Any) -> dict[str, Any]:
    """The service with the template that is declared."""
    template = {"serviceAccount": "llm@acme.iam.gserviceaccount.com", **service_inputs()["template"]}
    return live_service(template=template, **changes)


def old_revision(minimum: int) -> dict[str, Any]:
    template = service_inputs()["template"]
    return {"name": OLD, **template, "scaling": {"minInstanceCount": minimum, "maxInstanceCount": 5}}


def beside(**target: Any) -> list[dict[str, Any]]:
    newest = {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}
    return [newest, {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION", "revision": "llm-00001-old", **target}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("live", "minimum", "idle", "settings"),
    [
        (running(), 0, 0, []),
        (running(scaling={"minInstanceCount": 2}), 0, 2, ["scaling.minInstanceCount"]),
        (
            running(scaling={"scalingMode": "MANUAL", "manualInstanceCount": 3}), 0, 3,
            ["scaling.scalingMode", "scaling.manualInstanceCount"],
        ),
        (running(traffic=beside(tag="old")), 4, 4, ["traffic, tag old"]),
        (running(traffic=beside(tag="old")), 0, 0, ["traffic, tag old"]),
        (running(traffic=beside(percent=10)), 1, 1, ["traffic"]),
    ],
)  # fmt: skip
def test_the_price_is_that_of_what_lives(
    cloud: Deployed, live: Any, minimum: int, idle: int, settings: list[str]
) -> None:
    targets = [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}]
    cloud.keep("dev", state_of(service_resource(traffics=targets)))
    cloud.live |= {SERVICE: live, OLD: old_revision(minimum)}
    stack_status = of(cloud)
    assert stack_status.usd_per_hour_idle == idle * HOUR
    assert [each.setting for each in stack_status.outside] == settings


def test_a_price_whose_revision_may_not_be_read_is_an_error_and_no_price(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource()))
    denied = {"error": {"code": 403, "message": "Permission 'run.revisions.get' denied", "status": "PERMISSION_DENIED"}}
    cloud.live |= {SERVICE: running(traffic=beside(tag="old")), OLD: Answer(403, denied)}
    with pytest.raises(ApiError, match=r"run\.revisions\.get"):
        of(cloud)


def test_an_instance_has_the_price_of_its_live_limits(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource()))
    live = running()
    live["template"]["containers"] = [{"resources": {"limits": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}}}]
    cloud.live[SERVICE] = live
    stack_status = of(cloud)
    assert stack_status.usd_per_hour is not None
    assert stack_status.usd_per_hour > HOUR
    assert {each.setting.rpartition(".")[2] for each in stack_status.outside} == {"cpu", "memory"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({"location": "US-EAST4"}, "near us-east4; reading it costs 0.00 USD a start"),
        (
            {"location": "US-CENTRAL1"},
            "FAR: gs://models is in us-central1, and servers run in us-east4: each start reads",
        ),
        ({"location": "MARS1"}, "not judged for us-east4; reading it costs an unknown amount"),
        (None, "gs://models, whose location is not known"),
    ],
)
def test_the_place_of_the_weights_is_shown_with_its_price(cloud: Deployed, place: Any, text: str) -> None:
    read_weights(cloud, service_resource())
    cloud.live[SERVICE] = live_service()
    cloud.live |= {} if place is None else {"b/models": place}
    stack_status = of(cloud)
    assert text in (stack_status.weights or "")
    assert stack_status.verdict == "ready"


def read_weights(cloud: Deployed, *services: dict[str, Any]) -> None:
    """Keep the state of services that read their weights from one bucket."""
    type_ = "pulumi-python:dynamic/components:ModelFiles"
    outputs = {"bucket": "models", "path": "gemma", "total_bytes": 8 << 30}
    files = {"urn": f"urn:pulumi:dev::bezel::{type_}::model", "type": type_, "id": "model", "outputs": outputs}
    environ: Any = cloud.context.environ
    environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"] = f"{cloud.server.url}/run/v2/"
    cloud.keep("dev", state_of(*services, files))


def test_weights_far_from_several_regions_are_to_be_copied(cloud: Deployed) -> None:
    cloud.live["b/models"] = {"location": "US-EAST4"}
    read_weights(cloud, service_resource(), further_resource("europe-west4"))
    line = weights_line(cloud.context, cloud.context.deployment("dev")) or ""
    assert "servers run in europe-west4" in line
    assert "Use a copy in each region: `bezel:weights: {regional_buckets: true}`" in line
    read_weights(cloud, further_resource("europe-west4"))
    line = weights_line(cloud.context, cloud.context.deployment("dev")) or ""
    assert "Use a bucket in europe-west4" in line
    assert "regional_buckets" not in line


def test_a_stack_without_a_bucket_has_no_place_of_its_weights(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource()))
    cloud.live[SERVICE] = live_service()
    assert of(cloud).weights is None
