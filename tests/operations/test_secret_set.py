"""Setting a secret in two steps against localcloud's own API: created once, versions added, the value nowhere else."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel.operations.changes.basis import ChangedError
from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.registry import OPERATIONS
from bezel.operations.secret.secret_set import apply_set, plan_set, stored_value
from bezel.operations.secret.secret_show import SecretArguments
from bezel.rest import RestError
from bezel_base.errors import UserError
from tests.support.operations.project_cloud import OneProject, one_project
from tests.support.rest.fake_google import Answer

SECRETS = "/secretmanager/v1/projects/bezel-local/secrets"
VALUE = b"hf_PlantedPlantedPlanted123"


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProject]:
    with one_project(tmp_path, monkeypatch) as project_cloud:
        yield project_cloud


def plan(cloud: OneProject, stack: str | None = None) -> Plan:
    with cloud.context() as context:
        return plan_set(context, SecretArguments(name="hf-token", stack=stack))


def apply(cloud: OneProject, planned: Plan, value: bytes = VALUE) -> Outcome:
    with cloud.context() as context:
        return apply_set(context, planned, value)


def stored_value_of(cloud: OneProject, version: str = "latest") -> bytes:
    version_content = cloud.project.ok("GET", f"{SECRETS}/hf-token/versions/{version}:access")
    return base64.b64decode(version_content["payload"]["data"])


@pytest.mark.slow
def test_a_missing_secret_is_created_and_a_second_value_is_a_new_version(cloud: OneProject) -> None:
    """The new secret has the labels; the first version stays."""
    planned = plan(cloud)
    assert [change.name for change in planned.changes] == ["hf-token", "hf-token, version 1"]
    assert cloud.changing_calls == []
    outcome = apply(cloud, planned)
    assert (outcome.verdict, stored_value_of(cloud)) == ("done", VALUE)
    assert cloud.project.ok("GET", f"{SECRETS}/hf-token")["labels"] == {"managed-by": "bezel"}
    again = plan(cloud)
    assert [change.name for change in again.changes] == ["hf-token, version 2"]
    assert any("version 1 stays" in text for text in again.warnings)
    apply(cloud, again, b"another")
    assert (stored_value_of(cloud), stored_value_of(cloud, "1")) == (b"another", VALUE)
    shown = planned.model_dump_json() + planned.text() + outcome.model_dump_json() + outcome.text()
    assert VALUE.decode() not in shown + "".join(cloud.said)


@pytest.mark.slow
def test_a_stacks_secret_gets_its_labels_but_not_its_name(cloud: OneProject) -> None:
    apply(cloud, plan(cloud, "l4-qat"))
    labels = cloud.project.ok("GET", f"{SECRETS}/hf-token")["labels"]
    assert labels["environment"] == "dev"
    assert "stack" not in labels


@pytest.mark.slow
def test_a_plan_is_worth_nothing_after_another_version(cloud: OneProject) -> None:
    planned = plan(cloud)
    apply(cloud, planned)
    with pytest.raises(ChangedError, match="the secret's versions"):
        apply(cloud, planned, b"late")
    assert stored_value_of(cloud) == VALUE


@pytest.mark.slow
def test_after_a_kill_between_its_two_requests_the_same_command_goes_on(cloud: OneProject) -> None:
    cloud.server.routes.insert(0, lambda call: Answer(reset=True) if call.path.endswith(":addVersion") else None)
    with pytest.raises(RestError):
        apply(cloud, plan(cloud))
    assert len([path for path in cloud.changing_calls if path.endswith(":addVersion")]) == 1
    cloud.server.routes.pop(0)
    apply(cloud, plan(cloud))
    assert stored_value_of(cloud) == VALUE


@pytest.mark.slow
def test_a_refusal_that_repeats_the_value_is_shown_without_it(cloud: OneProject) -> None:
    planned = plan(cloud)
    sent = VALUE.decode() + base64.b64encode(VALUE).decode()
    refusal = {"error": {"code": 400, "message": f"bad payload {sent}", "status": "INVALID_ARGUMENT"}}
    cloud.server.routes.insert(0, lambda call: Answer(400, refusal) if call.path.endswith(":addVersion") else None)
    with pytest.raises(RestError) as refused:
        apply(cloud, planned)
    assert "bad payload" in str(refused.value)
    assert VALUE.decode() not in str(refused.value)
    assert base64.b64encode(VALUE).decode() not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "kept"),
    [(b"x", b"x"), (b"x\n", b"x"), (b"x\r\n", b"x"), (b"x\n\n", b"x\n"), (b" x ", b" x "), (b"\x00\xff", b"\x00\xff")],
)
def test_one_line_end_is_not_part_of_a_value(value: bytes, kept: bytes) -> None:
    assert stored_value(value) == kept


@pytest.mark.parametrize("value", [b"", b"\n", b"\r\n", b"x" * 65_537])
def test_no_value_and_too_large_a_one_are_refused_without_showing_it(value: bytes) -> None:
    with pytest.raises(UserError) as refused:
        stored_value(value)
    assert "xxxx" not in str(refused.value)


def test_no_operation_takes_a_value_of_a_secret() -> None:
    for each in OPERATIONS:
        assert not {"value", "secret_value", "password"} & {*each.arguments().model_fields}, each.name
