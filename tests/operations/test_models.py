"""Models of a deployed server at the wire: all that it lists, the declared one, no instance unasked."""

from typing import Any

import pytest

from bezel.operations.models.models import Models, ModelsArguments, models
from bezel.operations.serving.server import ServerError
from tests.support.operations.deployed import Deployed
from tests.support.operations.model_server import ModelServer
from tests.support.rest.fake_google import Answer

PATH = "/v1/models"
ENTRY = {"id": "gemma", "root": "/models/gemma", "max_model_len": 8192, "created": 1_790_000_000, "owned_by": "vllm"}


def of(cloud: Deployed, *entries: Any, minimum: int = 1, wake: bool = False) -> tuple[Models, ModelServer]:
    server = ModelServer(cloud, minimum=minimum)
    server.answers[PATH] = Answer(json={"object": "list", "data": list(entries)})
    return models(cloud.context, ModelsArguments(stack="dev", wake=wake)), server


@pytest.mark.slow
def test_a_server_s_models_are_listed_with_their_details(cloud: Deployed) -> None:
    found, server = of(cloud, ENTRY, {"id": "adapter", "parent": "gemma"})
    assert [(each.id, each.max_model_len, each.parent) for each in found.models] == [
        ("gemma", 8192, None),
        ("adapter", None, "gemma"),
    ]
    assert (found.is_declared_served, found.exit_code, len(server.calls)) == (True, 0, 1)
    assert "8192" in found.text()
    assert "unknown" in found.text()


def test_a_declared_model_that_is_not_served_fails(cloud: Deployed) -> None:
    found, _ = of(cloud, {**ENTRY, "id": "other"})
    assert (found.is_declared_served, found.exit_code) == (False, 1)
    assert "the stack declares gemma" in found.text()


@pytest.mark.slow
def test_no_instance_is_started_to_list_its_models(cloud: Deployed) -> None:
    found, server = of(cloud, ENTRY, minimum=0)
    assert (found.is_read, found.is_declared_served, found.exit_code, server.calls) == (False, None, 1, [])
    assert "--wake asks nevertheless" in found.text()
    found, server = of(cloud, ENTRY, minimum=0, wake=True)
    assert (found.is_read, len(server.calls)) == (True, 1)


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "\x1b[31mred", "max_model_len": "8192", "created": -1},
        {"id": 5, "created": 10**30, "root": ["x"]},
        {},
    ],
)
def test_what_is_no_value_of_its_field_is_unknown_and_never_an_escape_sequence(
    cloud: Deployed, entry: dict[str, Any]
) -> None:
    found, _ = of(cloud, entry, "no model", 7)
    assert [(each.max_model_len, each.created_at, each.root) for each in found.models] == [(None, None, None)]
    assert "\x1b" not in found.text()


@pytest.mark.parametrize("answer", [Answer(status=500, text="broken"), Answer(json={"data": 7}), Answer(text="[")])
def test_an_answer_that_lists_nothing_is_an_error(cloud: Deployed, answer: Answer) -> None:
    server = ModelServer(cloud)
    server.answers[PATH] = answer
    with pytest.raises(ServerError):
        models(cloud.context, ModelsArguments(stack="dev"))
