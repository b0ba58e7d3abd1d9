"""A door of keys is open to everyone, so the security pack judges what runs in it: the shipped program or none."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest

from bezel_components.container_image import ContainerImage, ContainerImageArgs
from bezel_components.door.key_door import KeyDoor, KeyDoorArgs
from tests.support.components.fake_cloud_run import running
from tests.support.components.fake_engine import DIGEST, declare
from tests.support.policies.harness import LABELS, OF_A_RESOURCE, SERVICE, UNKNOWN, change, stack_violations, violations

REPOSITORY = "gcp:artifactregistry/repository:Repository"
RULE = "no-public-invoker"
CONTAINER = "template.containers.0"


@cache
def declared_door() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Type and inputs of each resource of a door, as the component declares it."""

    def program() -> None:
        image = ContainerImageArgs(
            project="acme-llm",
            location="us-east4",
            repository_id="chat-images-door",
            image="library/python",
            tag="3.13.14-slim-bookworm",
            digest=DIGEST,
            labels=LABELS,
        )
        args = KeyDoorArgs(
            project="acme-llm",
            location="us-east4",
            service="chat-door",
            account_id="chat-door",
            image=ContainerImage("image", image).reference,
            secret_id="chat-door-program",
            bucket="acme-llm-chat-door",
            upstream="https://chat.example",
            servers={"us-east4": "chat"},
            labels=LABELS,
        )
        KeyDoor("door", args)

    with pytest.MonkeyPatch.context() as patch, running(patch):
        return tuple((each.type, _plain(each.inputs)) for each in declare(program).all)


def _plain(value: Any) -> Any:
    """Inputs without the wire's wrapping of secrets, which the library takes off too."""
    if isinstance(value, dict):
        return (
            _plain(value["value"])
            if "4dabf18193072939515e22adb298388d" in value
            else {key: _plain(part) for key, part in value.items()}
        )
    return [_plain(each) for each in value] if isinstance(value, list) else value


def door(**changes: Any) -> dict[str, Any]:
    (inputs,) = [inputs for token, inputs in declared_door() if token == SERVICE]
    return change(inputs, {path.replace("__", "."): value for path, value in changes.items()})


@pytest.mark.parametrize("policy", OF_A_RESOURCE)
def test_door_as_this_repository_makes_it_passes(policy: str) -> None:
    for token, inputs in declared_door():
        assert violations(policy, token, copy.deepcopy(inputs)) == [], token


OTHERS: list[tuple[dict[str, Any], str]] = [
    ({f"{CONTAINER}.image": f"us-docker.pkg.dev/acme-llm/hub/own/server@{DIGEST}"}, "image"),
    ({f"{CONTAINER}.image": "us-docker.pkg.dev/acme-llm/hub/library/python:3.13.14-slim-bookworm"}, "image"),
    ({f"{CONTAINER}.commands": ["sh"]}, "commands"),
    ({f"{CONTAINER}.args.4": "0" * 64}, "args"),
    ({f"{CONTAINER}.args.2": "print()"}, "args"),
    ({f"{CONTAINER}.args": []}, "args"),
    ({f"{CONTAINER}.envs.0.name": "LD_PRELOAD"}, "envs"),
    ({f"{CONTAINER}.envs.0.valueSource": {"secretKeyRef": {"secret": "s"}}}, "envs"),
    ({f"{CONTAINER}.volumeMounts.0.mountPath": "/usr/local/lib/python3.13"}, "volumeMounts"),
    ({f"{CONTAINER}.volumeMounts.0.subPath": "a"}, "volumeMounts"),
    ({f"{CONTAINER}.workingDir": "/door"}, "template.containers.0 is not"),
    ({f"{CONTAINER}.baseImageUri": "python"}, "template.containers.0 is not"),
    ({"template.volumes.0.gcs": {"bucket": "b"}}, "template.volumes.0"),
    ({"template.volumes": []}, "has 0 of them"),
    ({"template.containers": [{"image": "i"}, {"envs": [{"name": "DOOR_BUCKET"}]}]}, "has 2 of them"),
]


@pytest.mark.parametrize(("changes", "flaw"), OTHERS)
def test_open_service_that_runs_anything_else_is_refused(changes: dict[str, Any], flaw: str) -> None:
    (message,) = violations(RULE, SERVICE, change(door(), changes))
    assert "invokerIamDisabled = true" in message
    assert flaw in message
    assert "KeyDoor" in message


def test_open_service_without_variables_of_a_door_is_refused_as_any() -> None:
    (message,) = violations(RULE, SERVICE, change(door(), {f"{CONTAINER}.envs": []}))
    assert "the whole internet may use the service" in message


def test_door_whose_switch_or_program_is_not_known_is_refused() -> None:
    for path in ("invokerIamDisabled", f"{CONTAINER}.args", f"{CONTAINER}.image", "template.volumes"):
        (message,) = violations(RULE, SERVICE, change(door(), {path: UNKNOWN}))
        assert f"{path} = (not known" in message


def test_address_of_a_door_is_refused_unless_its_image_is_of_docker_hub() -> None:
    (repository,) = [inputs for token, inputs in declared_door() if token == REPOSITORY]

    def refusals(changes: dict[str, Any]) -> list[str]:
        return stack_violations("no-open-address", [(SERVICE, door()), (REPOSITORY, change(repository, changes))])

    assert refusals({}) == []
    standard = {"mode": "STANDARD_REPOSITORY", "remoteRepositoryConfig": None}
    elsewhere = {"remoteRepositoryConfig.dockerRepository": {"customRepository": {}}}
    for changes in (standard, {"repositoryId": "other"}, elsewhere):
        (message,) = refusals(changes)
        assert "repository chat-images-door" in message
        assert "publicRepository DOCKER_HUB" in message
    assert stack_violations("no-open-address", [(SERVICE, change(door(), {"invokerIamDisabled": False}))]) == []
