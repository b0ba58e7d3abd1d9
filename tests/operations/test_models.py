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
    listing, server = of(cloud, ENTRY, {"id": "adapter", "parent": "gemma"})
    assert [(each.id, each.max_model_len, each.parent) for each in listing.models] == [
        ("gemma", 8192, None),
        ("adapter", None, "gemma"),
    ]
    assert (listing.is_declared_served, listing.exit_code, len(server.calls)) == (True, 0, 1)
    assert "8192" in listing.text()
    assert "unknown" in listing.text()


def test_a_declared_model_that_is_not_served_fails(cloud: Deployed) -> None:
    listing, _ = of(cloud, {**ENTRY, "id": "other"})
    assert (listing.is_declared_served, listing.exit_code) == (False, 1)
    assert "the stack declares gemma" in listing.text()


@pytest.mark.slow
def test_no_instance_is_started_to_list_its_models(cloud: Deployed) -> None:
    listing, server = of(cloud, ENTRY, minimum=0)
    assert (listing.is_read, listing.is_declared_served, listing.exit_code, server.calls) == (False, None, 1, [])
    assert "--wake asks nevertheless" in listing.text()
    listing, server = of(cloud, ENTRY, minimum=0, wake=True)
    assert (listing.is_read, len(server.calls)) == (True, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry",
    [
        {"id": "\x1b[31mred", "max_model_len": "8192", "created": -1},
        {"id": 5, "created": 10**30, "root": ["x"]},
        {},
    ],
)
def test_a_wrong_field_value_is_unknown_and_never_an_escape_sequence(cloud: Deployed, entry: dict[str, Any]) -> None:
    listing, _ = of(cloud, entry, "no model", 7)
    assert [(each.max_model_len, each.created_at, each.root) for each in listing.models] == [(None, None, None)]
    assert "\x1b" not in listing.text()


@pytest.mark.slow
@pytest.mark.parametrize("answer", [Answer(status=500, text="broken"), Answer(json={"data": 7}), Answer(text="[")])
def test_an_answer_that_lists_nothing_is_an_error(cloud: Deployed, answer: Answer) -> None:
    server = ModelServer(cloud)
    server.answers[PATH] = answer
    with pytest.raises(ServerError):
        models(cloud.context, ModelsArguments(stack="dev"))
