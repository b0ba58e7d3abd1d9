"""The hook on a failed service: what it says, and that it never makes things worse."""

import asyncio
import contextvars
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pulumi import ErrorHookArgs
from pulumi.runtime import Settings, configure

from bezel_components.base.failure_explanation import _on_error, service_of
from tests.support.rest.fake_google import PLANTED, Answer
from tests.support.smoke.fake_service import SERVICE, Project, condition
from tests.support.smoke.plugin import Engine, engine_listening

URN = "urn:pulumi:dev::bezel::gcp:cloudrunv2/service:Service::llm"
INPUTS = {"project": "demo", "location": "europe-west4", "name": "llm"}


@pytest.fixture
def messages(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, value in project.environment(tmp_path).items():
        monkeypatch.setenv(name, value)

    def run(args: ErrorHookArgs) -> tuple[bool, Engine]:
        def inside() -> bool:
            configure(Settings(project="bezel", stack="dev", engine=address))
            return asyncio.run(_on_error(args))

        engine.logged.clear()
        # pulumi keeps its settings in context variables.
        return contextvars.copy_context().run(inside), engine

    with engine_listening() as (engine, address):
        yield run


def failed_hook(**others: Any) -> ErrorHookArgs:
    fields: dict[str, Any] = {
        "urn": URN,
        "id": "",
        "name": "llm",
        "type": "gcp:cloudrunv2/service:Service",
        "new_inputs": INPUTS,
        "failed_operation": "create",
        "errors": ["Error waiting to create Service: Error code 9, message: failed to listen on PORT"],
    }
    return ErrorHookArgs(**(fields | others))


def test_a_failed_create_is_explained_and_not_tried_again(project: Project, messages: Any) -> None:
    """A failed create is explained in the service's row and not tried again."""
    project.terminal = condition("FAILED", reason="HEALTH_CHECK_CONTAINER_ERROR", message="failed to listen")
    project.log = ["INFO", f"NotImplementedError: Unsupported speculative method: 'mtp' Bearer {PLANTED}"]
    again, engine = messages(failed_hook())
    assert again is False
    assert [(one.urn, one.ephemeral) for one in engine.logged] == [(URN, False)]
    text = engine.logged[0].message
    assert "platform: Ready failed (HEALTH_CHECK_CONTAINER_ERROR): failed to listen" in text
    assert "Repair: copy the model's assistant" in text
    assert "Error code 9" not in text
    assert PLANTED not in text


def test_the_operation_s_own_error_is_weighed_where_nothing_else_was_said(project: Project, messages: Any) -> None:
    project.log = ["INFO"]
    _, engine = messages(
        failed_hook(errors=["Error code 8, message: Quota exceeded for total allowable count of GPUs"])
    )
    assert "Repair: request more under IAM & Admin > Quotas" in engine.logged[0].message


def test_a_failed_delete_is_left_to_the_engine(messages: Any) -> None:
    again, engine = messages(failed_hook(failed_operation="delete", id=SERVICE))
    assert (again, engine.logged) == (False, [])


def test_a_platform_that_says_nothing_hides_nothing(project: Project, messages: Any) -> None:
    project.google.routes.insert(
        0, lambda call: Answer(403, {"error": {"message": PLANTED}}) if "/v2/" in call.path else None
    )
    again, engine = messages(failed_hook())
    assert again is False
    assert "could not be read" in engine.logged[0].message


@pytest.mark.parametrize(
    ("change", "environ", "expected"),
    [
        ({}, {}, SERVICE),
        ({"id": SERVICE, "new_inputs": None}, {}, SERVICE),
        ({"new_inputs": {"location": "europe-west4", "name": "llm"}}, {"GOOGLE_PROJECT": "demo"}, SERVICE),
        ({"new_inputs": {"location": "europe-west4", "name": "llm"}}, {"GOOGLE_CLOUD_PROJECT": "demo"}, SERVICE),
        ({"new_inputs": {"location": "europe-west4", "name": "llm"}}, {}, None),
        ({"new_inputs": None}, {"GOOGLE_PROJECT": "demo"}, None),
    ],
)
def test_the_service_is_found_by_its_id_or_by_its_inputs(
    change: dict[str, Any], environ: dict[str, str], expected: str | None
) -> None:
    assert service_of(failed_hook(**change), environ) == expected
