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
    with one_project(tmp_path, monkeypatch) as project_cloud:
        yield project_cloud


def of(cloud: OneProject, name: str = "hf-token", **arguments: Any) -> Secret:
    with cloud.context() as context:
        return show(context, SecretArguments(name=name, **arguments))


def make_secret(cloud: OneProject, **labels: str) -> None:
    body = {"replication": {"automatic": {}}, "labels": labels}
    cloud.project.ok("POST", SECRETS, body, secretId="hf-token")


def add_version(cloud: OneProject) -> None:
    data = base64.b64encode(VALUE.encode()).decode()
    cloud.project.ok("POST", f"{SECRETS}/hf-token:addVersion", {"payload": {"data": data}})


def test_a_secret_that_is_missing_has_the_command_that_sets_it(cloud: OneProject) -> None:
    secret = of(cloud)
    assert (secret.exists, secret.has_value, secret.version, secret.exit_code) == (False, False, None, 1)
    assert secret.command == "bezel secret set hf-token"
    assert of(cloud, stack="l4-qat").command == "bezel secret set hf-token --stack l4-qat"


def test_a_secret_without_a_version_has_no_value(cloud: OneProject) -> None:
    make_secret(cloud)
    secret = of(cloud)
    assert (secret.exists, secret.has_value, secret.is_bezels) == (True, False, False)


def test_a_secret_with_a_version_has_one_and_it_is_not_shown(cloud: OneProject) -> None:
    make_secret(cloud, **{"managed-by": "bezel"})
    add_version(cloud)
    secret = of(cloud)
    assert (secret.has_value, secret.version, secret.version_state, secret.exit_code) == (True, 1, "ENABLED", 0)
    assert secret.is_bezels
    assert VALUE not in secret.text() + secret.model_dump_json()
    assert [path for path in cloud.server.paths() if ":access" in path] == []
    assert cloud.changing_calls == []


@pytest.mark.parametrize(("verb", "state"), [("disable", "DISABLED"), ("destroy", "DESTROYED")])
def test_a_newest_version_that_cannot_be_read_is_no_value(cloud: OneProject, verb: str, state: str) -> None:
    make_secret(cloud)
    add_version(cloud)
    cloud.project.ok("POST", f"{SECRETS}/hf-token/versions/1:{verb}", {})
    secret = of(cloud)
    assert (secret.has_value, secret.version, secret.version_state) == (False, 1, state)


def test_the_stacks_that_name_it_are_those_of_the_stack_files(cloud: OneProject) -> None:
    named = [stack for stack in (Path(__file__).parents[2]).glob("Pulumi.*.yaml") if "hf-token" in stack.read_text()]
    assert len(of(cloud).used_by) == len(named)
    assert of(cloud, "no-such-secret").used_by == ()


def test_a_refusal_is_told(cloud: OneProject) -> None:
    cloud.project.cloud.store.put("api", "secretmanager.googleapis.com", {"state": "DISABLED"})
    with pytest.raises(ApiError, match="Secret Manager API has not been used") as refused:
        of(cloud)
    assert "`gcloud services enable secretmanager.googleapis.com --project=" in str(refused.value)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a" * 256, "a:b", "hf token", VALUE])
def test_only_ids_of_secrets_become_parts_of_addresses(name: str) -> None:
    with pytest.raises(ValidationError):
        SecretArguments(name=name)
