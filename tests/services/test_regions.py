"""Present resources of a service in a state, and what a failure in a region says: pure rules, without an engine."""

from typing import Any

import pytest

from bezel.planner import Plan, make_plan
from bezel_components.lookups.stack_state import StateResource
from bezel_services.regions.deployed import Deployed, deployed_of, protection_problems
from bezel_services.regions.failure import failure_texts

VLLM = "bezel:services:VllmService"
SERVICE = f"{VLLM}$bezel:cloudrun:CloudRunGpuService$gcp:cloudrunv2/service:Service"
IMAGE = f"{VLLM}$bezel:registry:ContainerImage$gcp:artifactregistry/repository:Repository"
BUCKET = f"{VLLM}$bezel:storage:WeightsBucket$gcp:storage/bucket:Bucket"
HEALTH = f"{VLLM}$pulumi-python:dynamic/smoke:HealthCheck"
ADDRESS = f"{VLLM}$bezel:address:GlobalAddress"
PLACED = {"location": "us-east4"}


@pytest.mark.parametrize(
    ("resources", "deployed"),
    [
        ([], Deployed()),
        ([(SERVICE, "chat-service-service", PLACED)], Deployed(region="us-east4")),
        ([(f"acme:Site${SERVICE}", "chat-service-service", PLACED)], Deployed(region="us-east4")),
        ([(IMAGE, "chat-image-repository", PLACED)], Deployed(region="us-east4")),
        ([(SERVICE, "chat-service-us-east4-service", PLACED)], Deployed()),
        (
            [
                (SERVICE, "chat-service-us-east4-service", PLACED),
                (HEALTH, "chat-health", {"service": "projects/p/locations/us-east4/services/chat"}),
            ],
            Deployed(region="us-east4"),
        ),
        ([(HEALTH, "chat-health", {"service": "chat"})], Deployed()),
        ([(SERVICE, "draft-service-service", PLACED)], Deployed()),
        ([("gcp:cloudrunv2/service:Service", "chat-service-service", PLACED)], Deployed()),
        ([(SERVICE, "chat-service-service", {})], Deployed()),
        ([(BUCKET, "chat-weights-bucket", {"location": "EUROPE-WEST4"})], Deployed(bucket_location="europe-west4")),
        (
            [(SERVICE, "chat-service-us-east4-service", {**PLACED, "name": "chat", "deletionProtection": True})],
            Deployed(protected=frozenset({("us-east4", "chat")})),
        ),
        ([(ADDRESS, "chat-address", {"url": "https://a.example"})], Deployed(address="https://a.example")),
    ],
)
def test_a_state_says_where_the_resources_without_a_region_are(
    resources: list[tuple[str, str, dict[str, Any]]], deployed: Deployed
) -> None:
    assert deployed_of("chat", [StateResource(*each) for each in resources]) == deployed


def test_a_protected_service_is_never_left_behind() -> None:
    first, last = ("us-east4", "chat"), ("europe-west4", "chat")
    deployed = Deployed(protected=frozenset({first, last}))
    assert list(protection_problems(deployed, {first, last, ("europe-west1", "chat")})) == []
    for services in ({first}, {first, ("europe-west4", "answers")}):
        (problem,) = protection_problems(deployed, services)
        assert (problem.key, problem.value) == ("service chat in europe-west4", "protected from deletion")
        assert "the stack no longer has it: the deploy would fail at its end" in problem.consequence
        assert "with bezel:deletion_protection: never" in problem.repair
    assert list(protection_problems(Deployed(), {first})) == []


def test_a_failure_names_the_waiting_regions_and_how_to_leave_one_out() -> None:
    settings = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4"}
    regions = {"regions": ["us-east4", "europe-west4"], "optional_regions": ["europe-west4"]}
    plan = make_plan({**settings, **regions}, project="acme-llm", stack="dev")
    assert isinstance(plan, Plan)
    first, last = plan.regions
    (waiting,) = failure_texts(first, "chat", ["europe-west4", "europe-west1"])
    assert waiting.startswith(
        "europe-west4, europe-west1 wait for us-east4, which comes first: nothing of the service chat"
    )
    (optional,) = failure_texts(last, "chat", [])
    assert "take it out of bezel:regions and bezel:optional_regions" in optional
    assert list(failure_texts(first, "chat", [])) == []
