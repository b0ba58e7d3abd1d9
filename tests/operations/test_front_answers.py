"""Answers of a front end at the wire: each command says in words what refused it, and none shows a page."""

from typing import Any

import pytest

from base_support.front_answers import ANSWERS
from bezel.diagnosis.client import Server, error_text
from bezel.operations.memory.memory import MemoryArguments, memory
from bezel.operations.metrics.metrics import MetricsArguments, metrics
from bezel.operations.models.models import ModelsArguments, models
from bezel.operations.query.query import QueryArguments, query
from bezel_base.errors import UserError
from bezel_bench.commands.measure.target import _served_model
from bezel_bench.load.plan import Target
from bezel_bench.server.drain import drain
from bezel_bench.server.http_probe import asker
from tests.support.operations.deployed import Deployed
from tests.support.operations.log_server import LogServer
from tests.support.operations.model_server import ModelServer
from tests.support.rest.fake_google import Answer

PATHS = ("/v1/chat/completions", "/metrics", "/v1/models", "/health")


def answer_of(status: int, body: str) -> Answer:
    headers = {
        "Content-Type": "text/html; charset=UTF-8",
        **({"Location": "https://a.example/"} if status == 302 else {}),
    }
    return Answer(status=status, text=body, headers=headers)


@pytest.fixture
def server(cloud: Deployed) -> ModelServer:
    LogServer(cloud)
    return ModelServer(cloud)


def answer_text(server: ModelServer, command: str) -> str:
    context: Any = server.cloud.context
    try:
        if command == "query":
            return query(context, QueryArguments(stack="dev", prompt="Hi")).text()
        if command == "metrics":
            return metrics(context, MetricsArguments(stack="dev")).text()
        if command == "models":
            return models(context, ModelsArguments(stack="dev")).text()
        return memory(context, MemoryArguments(stack="dev")).text()
    except UserError as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.wide_except("*-page", "*-rights", "*-no_instance", "*-replaced", "*-timeout", "*-front_end")
@pytest.mark.parametrize(("status", "body", "kind"), ANSWERS)
def test_every_command_says_in_words_what_refused_it(server: ModelServer, status: int, body: str, kind: str) -> None:
    server.answers |= {path: answer_of(status, body) for path in PATHS}
    for command in ("query", "metrics", "models"):
        if command == "query" and status == 200:
            continue  # a stream without an event: its note says that it is incomplete
        text = answer_text(server, command)
        assert "answered by the platform, not by the server" in text, (command, text)
        assert "<" not in text.replace("<= ", ""), (command, text)
        assert kind == "no_service" or "bezel status" not in text
    assert "<" not in answer_text(server, "memory")


def test_an_answer_of_the_server_itself_stays_the_servers(server: ModelServer) -> None:
    error = {"error": {"message": "The model `x` does not exist.", "code": 404}}
    server.answers |= {path: Answer(status=404, json=error) for path in PATHS}
    text = answer_text(server, "query")
    assert "the server has no such path or model: HTTP 404: The model `x` does not exist." in text
    assert "`bezel models dev` lists what it serves" in text
    assert "answered by the platform" not in text


@pytest.mark.parametrize(("status", "body", "kind"), [row for row in ANSWERS if row[0] >= 400])
def test_smoke_and_benchmark_say_it_too(cloud: Deployed, status: int, body: str, kind: str) -> None:
    server = ModelServer(cloud)
    server.answers |= {path: answer_of(status, body) for path in PATHS}
    with Server(cloud.server.url, None) as client:
        smoke_text = error_text(client.send("GET", "/health"))
    assert smoke_text.startswith(f"HTTP {status}: ")
    assert "<" not in smoke_text, kind
    ask = asker(Target(cloud.server.url, "gemma", "chat", public=True), dict)
    with pytest.raises(UserError) as refused:
        _served_model(ask, cloud.server.url)
    why = drain(ask, lambda _: None).why
    for text in (str(refused.value), why):
        assert f"HTTP {status}: " in text
        assert "<" not in text
