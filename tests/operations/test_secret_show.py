"""State of a secret against localcloud's own API: whether it has a value, who reads it, and never the value."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bezel.operations.secret.secret_show import Secret, SecretArguments, show
from bezel.rest import ApiError
from tests.support.operations.project_cloud import OneProject, one_project

pytestmark = pytest.mark.slow  # a cloud behind a socket each
SECRETS = "/secretmanager/v1/projects/bezel-local/secrets"
VALUE = "hf_PlantedPlantedPlanted123"


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProject]:
    with one_project(tmp_path, monkeypatch) as found:
        yield found


def of(cloud: OneProject, name: str = "hf-token", **arguments: Any) -> Secret:
    with cloud.context() as context:
        return show(context, SecretArguments(name=name, **arguments))


def made(cloud: OneProject, **labels: str) -> None:
    body = {"replication": {"automatic": {}}, "labels": labels}
    cloud.project.ok("POST", SECRETS, body, secretId="hf-token")


def versioned(cloud: OneProject) -> None:
    data = base64.b64encode(VALUE.encode()).decode()
    cloud.project.ok("POST", f"{SECRETS}/hf-token:addVersion", {"payload": {"data": data}})


def test_a_secret_that_is_missing_has_the_command_that_sets_it(cloud: OneProject) -> None:
    found = of(cloud)
    assert (found.exists, found.has_value, found.version, found.exit_code) == (False, False, None, 1)
    assert found.command == "bezel secret set hf-token"
    assert of(cloud, stack="l4-qat").command == "bezel secret set hf-token --stack l4-qat"


def test_a_secret_without_a_version_has_no_value(cloud: OneProject) -> None:
    made(cloud)
    found = of(cloud)
    assert (found.exists, found.has_value, found.is_bezels) == (True, False, False)


def test_a_secret_with_a_version_has_one_and_it_is_not_shown(cloud: OneProject) -> None:
    made(cloud, **{"managed-by": "bezel"})
    versioned(cloud)
    found = of(cloud)
    assert (found.has_value, found.version, found.version_state, found.exit_code) == (True, 1, "ENABLED", 0)
    assert found.is_bezels
    assert VALUE not in found.text() + found.model_dump_json()
    assert [path for path in cloud.server.paths() if ":access" in path] == []
    assert cloud.written == []


@pytest.mark.parametrize(("verb", "state"), [("disable", "DISABLED"), ("destroy", "DESTROYED")])
def test_a_newest_version_that_cannot_be_read_is_no_value(cloud: OneProject, verb: str, state: str) -> None:
    made(cloud)
    versioned(cloud)
    cloud.project.ok("POST", f"{SECRETS}/hf-token/versions/1:{verb}", {})
    found = of(cloud)
    assert (found.has_value, found.version, found.version_state) == (False, 1, state)


def test_the_stacks_that_name_it_are_those_of_the_stack_files(cloud: OneProject) -> None:
    named = [stack for stack in (Path(__file__).parents[2]).glob("Pulumi.*.yaml") if "hf-token" in stack.read_text()]
    assert len(of(cloud).used_by) == len(named)
    assert of(cloud, "no-such-secret").used_by == ()


def test_a_refusal_is_told(cloud: OneProject) -> None:
    cloud.project.cloud.store.put("api", "secretmanager.googleapis.com", {"state": "DISABLED"})
    with pytest.raises(ApiError, match="Secret Manager API has not been used"):
        of(cloud)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a" * 256, "a:b", "hf token", VALUE])
def test_only_ids_of_secrets_become_parts_of_addresses(name: str) -> None:
    with pytest.raises(ValidationError):
        SecretArguments(name=name)
