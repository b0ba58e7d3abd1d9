"""Query of a deployed server at the wire: the answer as it comes, honest figures, and files of the project only."""

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.query.query import Answer, QueryArguments, query
from bezel.operations.serving.server import ServerError
from bezel_base.errors import UserError
from tests.support.operations.deployed import Deployed, service_resource, state_of
from tests.support.operations.model_server import ModelServer, piece, usage
from tests.support.rest.fake_google import Answer as Wire

PATH = "/v1/chat/completions"
PNG = b"\x89PNG\r\n\x1a\n rest"


@pytest.fixture
def server(cloud: Deployed) -> ModelServer:
    made = ModelServer(cloud, simulated=False)
    made.streams(piece("Red\nand "), piece("blue.", finish_reason="stop"), usage(9, 4))
    return made


def ask(server: ModelServer, **arguments: Any) -> Answer:
    return query(server.cloud.context, QueryArguments(stack="dev", prompt="Name colours.", **arguments))


def test_an_answer_comes_with_its_tokens_as_the_server_counts_them(server: ModelServer) -> None:
    result = ask(server, stats=True, max_tokens=7)
    assert (result.answer, result.finish_reason, result.exit_code) == ("Red\nand blue.", "stop", 0)
    assert result.stats is not None
    assert (result.stats.prompt_tokens, result.stats.output_tokens) == (9, 4)
    assert result.stats.ttft_seconds is not None
    assert 0 < result.stats.ttft_seconds <= result.stats.total_seconds
    (call,) = server.calls
    assert call.json["messages"] == [{"role": "user", "content": "Name colours."}]
    assert (call.json["model"], call.json["max_tokens"]) == ("gemma", 7)
    assert call.headers["authorization"].startswith("Bearer eyJ")
    assert "(simulated server)" not in result.text()


def test_words_of_a_simulated_server_are_replaced_by_what_it_is(cloud: Deployed) -> None:
    server = ModelServer(cloud)
    server.streams(piece("Red\nand "), piece("blue.", finish_reason="stop"), usage(9, 4))
    shown: list[str] = []
    context = replace(cloud.context, pieces=shown.append)
    result = query(context, QueryArguments(stack="dev", prompt="Name colours.", stats=True))
    assert shown == []
    *explanation, first_figure = result.text().splitlines()[:3]
    assert explanation == [
        "a simulated server answered: no model runs, and its filler is left out",
        "(--json has it); a real vLLM: make up STACK=dev SERVER=vllm MODEL=FOLDER",
    ]
    assert first_figure.endswith("(simulated server)")
    # The document has the words, and says what they are.
    assert (result.answer, result.simulated) == ("Red\nand blue.", True)


@pytest.mark.parametrize(
    ("pooled_at", "more", "where"),
    [
        ("", {}, "by a plugin"),
        ("/v1/rerank", {}, "ranks documents"),
        ("/classify", {"document": ("one",)}, "takes the prompt alone"),
        ("/v1/embeddings", {"image": "red.png"}, "asked with text"),
    ],
)
def test_model_that_pools_is_not_asked_otherwise(
    cloud: Deployed, pooled_at: str, more: dict[str, Any], where: str
) -> None:
    server = ModelServer(cloud)
    health = {
        "urn": "urn:pulumi:dev::bezel::pulumi-python:dynamic/smoke:HealthCheck::vllm-health",
        "type": "pulumi-python:dynamic/smoke:HealthCheck",
        "custom": True,
        "id": "it",
        "outputs": {"pooled_at": pooled_at},
    }
    cloud.keep("dev", state_of(service_resource(), health, url=cloud.server.url, model="bert"))
    with pytest.raises(UserError, match=where):
        query(cloud.context, QueryArguments(stack="dev", prompt="Name colours.", **more))
    assert server.calls == []


def test_model_that_generates_ranks_no_documents(server: ModelServer) -> None:
    with pytest.raises(UserError, match="ranks nothing"):
        ask(server, document=("one",))
    assert server.calls == []


@pytest.mark.slow
def test_figures_that_the_server_does_not_give_are_unknown(server: ModelServer) -> None:
    server.streams(piece("Red.", finish_reason="stop"))
    result = ask(server, stats=True)
    assert result.stats is not None
    assert (result.stats.output_tokens, result.stats.output_tokens_per_second) == (None, None)
    assert "tokens in, out   unknown, unknown" in result.text()


@pytest.mark.slow
def test_an_answer_is_shown_once_word_by_word_as_it_comes(server: ModelServer) -> None:
    server.streams(*(piece(text) for text in ("Red", "\nand", " blue", ".")), piece("", finish_reason="stop"))
    shown: list[str] = []
    context = replace(server.cloud.context, pieces=shown.append)
    result = query(context, QueryArguments(stack="dev", prompt="Name colours."))
    assert shown == ["Red\n", "and ", "blue.", "\n"]
    assert result.text() == ""
    assert ask(server).text() == "Red\nand blue.\n"


@pytest.mark.slow
@pytest.mark.parametrize("cut", range(1, 24))
def test_a_secret_of_the_caller_is_hidden_wherever_the_server_cuts_it(server: ModelServer, cut: int) -> None:
    secret = "hf_PlantedPlantedPlanted"
    server.streams(piece(f"It is {secret[:cut]}"), piece(f"{secret[cut:]} indeed.", finish_reason="stop"))
    shown: list[str] = []
    environ = {**server.cloud.context.environ, "OTHER_TOKEN": "my own pass phrase"}
    context = replace(server.cloud.context, environ=environ, pieces=shown.append)
    result = query(context, QueryArguments(stack="dev", prompt="Which token?"))
    assert "".join(shown) == f"{result.answer}\n" == "It is [redacted] indeed.\n"
    server.streams(piece("It is my ow"), piece("n pass"), piece(" phrase, no?", finish_reason="stop"))
    assert query(context, QueryArguments(stack="dev", prompt="Which token?")).answer == "It is [redacted], no?"


def test_an_answer_is_data_without_control_characters(server: ModelServer) -> None:
    server.streams(piece("a\x1b[2Jb", finish_reason="stop"))
    assert "\x1b" not in ask(server).text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("events", "note"),
    [
        ((piece("Red"),), "without its [DONE]"),
        ((piece("Red", finish_reason="stop"), {"error": {"message": "engine died"}}), "engine died"),
        (("no JSON",), "is not a JSON object"),
        (("[1]",), "is not a JSON object"),
    ],
)
def test_an_answer_that_breaks_off_is_a_failure_that_keeps_what_came(
    server: ModelServer, events: tuple[Any, ...], note: str
) -> None:
    server.streams(*events, done=False)
    result = ask(server)
    assert note in result.text()
    assert (result.finish_reason, result.exit_code) == (None, 1)


@pytest.mark.slow
def test_a_long_answer_is_cut_and_says_so(server: ModelServer) -> None:
    server.streams(*(piece("x" * 50_000) for _ in range(9)))
    result = ask(server)
    assert len(result.answer) < 260_000
    assert "is cut" in result.notes[0]


def test_a_refusal_is_an_error_with_the_server_s_reason(server: ModelServer) -> None:
    server.answers[PATH] = Wire(status=400, json={"error": {"message": "max_tokens is too large"}})
    with pytest.raises(ServerError, match="max_tokens is too large"):
        ask(server)


def test_no_instance_is_started_unasked(cloud: Deployed) -> None:
    server = ModelServer(cloud, minimum=0)
    server.streams(piece("Red.", finish_reason="stop"))
    result = ask(server)
    assert (result.is_asked, result.stats, result.exit_code, server.calls) == (False, None, 1, [])
    assert ask(server, wake=True).answer == "Red."


def test_an_image_of_the_project_is_sent(server: ModelServer) -> None:
    (server.cloud.folder / "cat.png").write_bytes(PNG)
    ask(server, image="cat.png")
    image, text = server.calls[0].json["messages"][0]["content"]
    assert image["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert text == {"type": "text", "text": "Name colours."}


@pytest.mark.parametrize(
    "name", ["../outside.png", "/etc/passwd", ".hidden.png", "link.png", "gone.png", "text.png", ".", "a\x00b"]
)
def test_no_other_file_is_read_or_sent(server: ModelServer, name: str) -> None:
    folder = server.cloud.folder
    outside = folder.parent / "outside.png"
    outside.write_bytes(PNG)
    (folder / ".hidden.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(outside)
    (folder / "text.png").write_text("hf_token")
    with pytest.raises(UserError, match="--image") as refused:
        ask(server, image=name)
    assert "hf_token" not in str(refused.value)
    assert server.calls == []
    assert Path(outside).exists()
