"""`VllmService` and `LeasedVllmService` in a program of somebody else: the whole thing, or an error to repair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from pulumi.runtime import set_all_config

from bezel.resource_cost.detection.accelerators import requested_by
from bezel_services.leased_vllm_service import LeasedVllmService
from bezel_services.settings.planning import ServiceRefusedError
from bezel_services.vllm_service import VllmService
from tests.support.components.fake_engine import Declarations, declare
from tests.support.service_settings import CHAT, LEASED

if TYPE_CHECKING:
    from tests.support.components.fake_cloud_run import FakeRun

SERVICE = "cloudrunv2/service:Service"


def declare_program(**services: dict[str, Any]) -> Declarations:
    """Declare a `VllmService` of each name with these settings; the result has the services."""

    def program() -> dict[str, VllmService]:
        set_all_config({"gcp:project": "acme-llm"})
        return {name: VllmService(name, **settings) for name, settings in services.items()}

    return declare(program)


@pytest.mark.slow
def test_one_resource_is_the_whole_service() -> None:
    declared = declare_program(chat=CHAT)
    service = declared.one(SERVICE)
    assert (service.name, service.inputs["project"], service.inputs["name"]) == (
        "chat-service-service",
        "acme-llm",
        "bezel-chat-test",
    )
    health, benchmark = declared.by_name("chat-health"), declared.by_name("chat-benchmark")
    assert declared.waits_for(health, service)
    assert declared.waits_for(benchmark, health)
    assert declared.waits_for(service, declared.by_name("chat-model"))
    component = declared.by_name("chat")
    assert component.type == "bezel:services:VllmService"
    assert component.outputs is not None
    assert set(component.outputs) >= {"url", "revision", "image", "model", "arguments", "simulated"}
    assert component.outputs["planned_memory"]["fit"]["weights_gib"] > 0
    assert component.outputs["planned_memory"]["fit"]["total_gib"] == pytest.approx(22.35)
    assert requested_by(component.type, component.outputs) is None


@pytest.mark.slow
def test_two_services_of_a_program_share_no_name() -> None:
    declared = declare_program(chat=CHAT, draft={**CHAT, "vllm": {"max-num-seqs": 4}})
    urns = [one.urn for one in declared.all]
    assert len(set(urns)) == len(urns)
    assert {one.inputs["name"] for one in declared.of(SERVICE)} == {"bezel-chat-test", "bezel-draft-test"}
    accounts = {one.inputs["accountId"] for one in declared.of("serviceaccount/account:Account")}
    assert len(accounts) == 2
    assert len({hook for one in declared.all for hook in one.hooks}) == 2
    assert not [one.name for one in declared.all if one.top_aliases]


@pytest.mark.slow
def test_a_service_can_be_below_a_resource_of_another_process() -> None:
    """As in the package, where the program's own stack is one: it has a URN, and no type."""

    def program() -> None:
        set_all_config({"gcp:project": "acme-llm"})
        parent = pulumi.resource.DependencyResource("urn:pulumi:test::bezel::pulumi:pulumi:Stack::bezel-test")
        VllmService("chat", pulumi.ResourceOptions(parent=parent, protect=False), **CHAT)

    assert declare(program).one(SERVICE).name == "chat-service-service"


@pytest.mark.slow
def test_dependencies_of_the_component_are_those_of_its_children() -> None:
    def program() -> None:
        set_all_config({"gcp:project": "acme-llm"})
        first = VllmService("first", None, **CHAT)
        VllmService("second", pulumi.ResourceOptions(depends_on=[first]), cloud_name="two", **CHAT)

    declared = declare(program)
    assert declared.waits_for(declared.by_name("second-runtime-account"), declared.by_name("first-health"))
    assert declared.by_name("second-service-service").inputs["name"] == "bezel-two"


@pytest.mark.slow
@pytest.mark.parametrize(("cloud_name", "stack"), [(None, ""), ("test", "test")])
def test_repair_of_missing_weights_names_the_stack_of_a_stack_file_alone(cloud_name: str | None, stack: str) -> None:
    declared = declare_program(chat={**CHAT, "cloud_name": cloud_name})
    assert declared.by_name("chat-model").inputs["stack"] == stack


@pytest.mark.slow
def test_leases_are_a_component_too() -> None:
    def program() -> LeasedVllmService:
        return LeasedVllmService("chat", project="acme-llm", **LEASED)

    declared = declare(program)
    assert declared.by_name("chat").type == "bezel:services:LeasedVllmService"
    assert declared.one("TpuRequest").name == "chat-lease-request"
    assert declared.by_name("chat-gateway-service").inputs["name"] == "bezel-chat-test"
    assert list(declared.result.leases) == ["bezel-chat-test"]


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"accelerator": "nvidia-l5"}, ("accelerator = nvidia-l5", "choose one of ")),
        ({"model": "gemma-4-31b-it"}, ("Repair:",)),
        ({"scalin": {"max_instances": 2}}, ("scalin", "did you mean `scaling`?")),
        ({"scaling": {"max_instance": 2}}, ("scaling.max_instance", "did you mean")),
        ({"vllm": {"max-model-len": 999_999}}, ("vllm.max-model-len = 999999",)),
        ({"labels": {"Owner": "x"}}, ("labels.Owner",)),
        ({"cost": {"max_hourly_usd": 0.1}}, ("cost.max_hourly_usd = 0.1",)),
        ({"region": "us-east9"}, ("region = us-east9",)),
        ({"access": {"public": "yes"}}, ("access.public = yes",)),
        ({"accelerator": "v6e-4"}, ("accelerator = v6e-4", "use LeasedVllmService")),
    ],
)
def test_wrong_argument_is_refused_by_its_own_name(changes: dict[str, Any], parts: tuple[str, ...]) -> None:
    with pytest.raises(ServiceRefusedError) as raised:
        declare_program(chat={**CHAT, **changes})
    assert isinstance(raised.value, pulumi.RunError)  # its text alone ends a program
    text = str(raised.value)
    assert text.startswith("VllmService chat cannot be planned: ")
    assert "Repair: " in text
    assert "bezel:" not in text
    for part in parts:
        assert part in text


def test_lease_of_a_gpu_of_cloud_run_is_refused() -> None:
    def program() -> None:
        LeasedVllmService("chat", project="acme-llm", **CHAT)

    with pytest.raises(ServiceRefusedError, match=r"LeasedVllmService chat cannot(.|\n)*use VllmS"):
        declare(program)


def test_service_without_a_project_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(variable, raising=False)

    def program() -> None:
        set_all_config({})
        VllmService("chat", **CHAT)

    with pytest.raises(ServiceRefusedError, match="gcp:project"):
        declare(program)


@pytest.mark.slow
def test_service_without_quota_is_refused_before_anything_is_declared(run: FakeRun) -> None:
    run.quota = 0
    declared: list[Declarations] = []
    with pytest.raises(ServiceRefusedError, match="NvidiaL4Gpu"):
        declared.append(declare_program(chat=CHAT))
    assert declared == []


@pytest.mark.slow
def test_door_of_keys_is_made_last_and_its_url_is_an_output() -> None:
    declared = declare_program(chat={**CHAT, "access": {"keys": True}})
    door, check = declared.by_name("chat-door-service"), declared.by_name("chat-door-check")
    assert (door.inputs["name"], door.inputs["location"]) == (
        "bezel-chat-test-door",
        declared.by_name("chat-service-service").inputs["location"],
    )
    for earlier in ("chat-benchmark", "chat-door-image-repository", "chat-door-bucket"):
        assert declared.waits_for(door, declared.by_name(earlier))
    assert declared.waits_for(check, door)
    outputs = declared.by_name("chat").outputs
    assert outputs is not None
    assert outputs["door"] == "https://chat.example"
    without = declare_program(chat=CHAT)
    assert [each.name for each in without.all if "door" in each.name] == []
    assert "door" not in (without.by_name("chat").outputs or {})
