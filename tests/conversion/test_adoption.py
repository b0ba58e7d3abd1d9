"""Import file of an adoption: what exists gets its id, below the components that the program declares."""

from dataclasses import replace
from typing import Any

import pytest

from bezel.conversion.adoption import (
    ACCOUNT,
    REPOSITORY,
    SERVICE,
    adopted_ids,
    adoption_commands,
    import_document,
)
from bezel.conversion.conversion import convert
from bezel.conversion.inputs.found_server import FoundServer
from bezel.planner import Plan
from bezel_base.errors import UserError

COMMAND = (
    "gcloud run deploy chat --image vllm/vllm-openai:v0.32.0 --region us-east4 --project acme-llm --gpu 1"
    " --gpu-type nvidia-l4 --no-gpu-zonal-redundancy --cpu 4 --memory 16Gi --max-instances 1 --concurrency 8"
    " --args=--model=google/gemma-4-E2B-it --service-account=own@acme-llm.iam.gserviceaccount.com"
)
PLACE = "projects/acme-llm/locations/us-east4"
ID = f"{PLACE}/services/chat"
WHOLE = {"type": "bezel:vllm:VllmService", "name": "llm", "component": True}
CREATED: dict[str, Any] = {
    "nameTable": {"llm": "urn:pulumi:chat::p::bezel:vllm:VllmService::llm"},
    "resources": [
        WHOLE,
        {"type": "bezel:identity:RuntimeIdentity", "name": "runtime", "component": True, "parent": "llm"},
        {"type": ACCOUNT, "name": "runtime-account", "id": "<PLACEHOLDER>", "parent": "runtime"},
        {"type": "bezel:registry:ContainerImage", "name": "image", "component": True, "parent": "llm"},
        {"type": REPOSITORY, "name": "image-repository", "id": "<PLACEHOLDER>", "parent": "image"},
        {"type": "bezel:cloudrun:CloudRunGpuService", "name": "service", "component": True, "parent": "llm"},
        {"type": SERVICE, "name": "service-service", "id": "<PLACEHOLDER>", "parent": "service", "version": "10.2.0"},
        {
            "type": "gcp:cloudrunv2/serviceIamMember:ServiceIamMember",
            "name": "service-invoker-user:a@example.com",
            "id": "<PLACEHOLDER>",
            "parent": "service",
        },
        {"type": "pulumi-python:dynamic/smoke:HealthCheck", "name": "health", "id": "<PLACEHOLDER>", "parent": "llm"},
    ],
}


def server_and_plan(command: str = COMMAND, **changes: Any) -> tuple[FoundServer, Plan]:
    made = convert(command, "FILE")
    assert isinstance(made.plan, Plan), made.objections
    return replace(made.converted.server, **changes), made.plan


def names(document: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("id", "") for each in document["resources"]}


def test_a_service_is_imported_below_the_components_of_the_program() -> None:
    document = import_document(CREATED, adopted_ids(*server_and_plan()))
    assert names(document) == {"llm": "", "service": "", "service-service": ID}
    assert document["nameTable"] == CREATED["nameTable"]
    assert document["resources"][-1] == {**CREATED["resources"][6], "id": ID}


def test_a_service_of_a_lost_state_is_imported_with_what_it_has() -> None:
    account = "bezel-chat@acme-llm.iam.gserviceaccount.com"
    image = "us-east4-docker.pkg.dev/acme-llm/bezel-chat-images/vllm/vllm-openai@sha256:" + "a" * 64
    server, plan = server_and_plan(account=account, image=image, invokers=("user:a@example.com",))
    document = import_document(CREATED, adopted_ids(server, plan))
    assert names(document) == {
        "llm": "",
        "runtime": "",
        "runtime-account": f"projects/acme-llm/serviceAccounts/{account}",
        "image": "",
        "image-repository": f"{PLACE}/repositories/bezel-chat-images",
        "service": "",
        "service-service": ID,
    }


@pytest.mark.parametrize(
    "changes", [{"name": "other"}, {"region": "us-central1"}, {"project": "other"}, {"on_cloud_run": False}]
)
def test_another_service_is_not_adopted(changes: dict[str, Any]) -> None:
    ids = adopted_ids(*server_and_plan(**changes))
    assert ids == {}
    with pytest.raises(UserError, match="no service that could be adopted"):
        import_document(CREATED, ids)


def test_a_service_that_was_adopted_already_is_not_adopted_again() -> None:
    ids = adopted_ids(*server_and_plan())
    left = [each for each in CREATED["resources"] if each["type"] != SERVICE]
    with pytest.raises(UserError, match="it has been adopted") as caught:
        import_document({"resources": left}, ids)
    (problem,) = caught.value.problems
    assert ID in str(problem)


def test_the_commands_name_the_file_as_a_word_of_a_shell() -> None:
    first, second, *others = adoption_commands("chat", "its own.json")
    assert first == "pulumi stack init chat"
    assert second.startswith("pulumi import --stack chat --file 'its own.json' --protect=false")
    assert others == ["pulumi preview --stack chat", "pulumi up --stack chat"]


def test_a_stack_is_made_with_its_key_unless_it_exists() -> None:
    first, *others = adoption_commands("chat", "import.json", provider="gcpkms://a b")
    assert first == "pulumi stack init chat --secrets-provider 'gcpkms://a b'"
    assert list(adoption_commands("chat", "import.json", provider="gcpkms://a b", exists=True)) == others
