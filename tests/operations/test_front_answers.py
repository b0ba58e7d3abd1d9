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


def asked(server: ModelServer, command: str) -> str:
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
@pytest.mark.parametrize(("status", "body", "kind"), ANSWERS)
def test_every_command_says_in_words_what_refused_it(server: ModelServer, status: int, body: str, kind: str) -> None:
    server.answers |= {path: answer_of(status, body) for path in PATHS}
    for command in ("query", "metrics", "models"):
        if command == "query" and status == 200:
            continue  # a stream without an event: its note says that it is incomplete
        said = asked(server, command)
        assert "answered by the platform, not by the server" in said, (command, said)
        assert "<" not in said.replace("<= ", ""), (command, said)
        assert kind == "no_service" or "bezel status" not in said
    assert "<" not in asked(server, "memory")


def test_an_answer_of_the_server_itself_stays_the_servers(server: ModelServer) -> None:
    error = {"error": {"message": "The model `x` does not exist.", "code": 404}}
    server.answers |= {path: Answer(status=404, json=error) for path in PATHS}
    said = asked(server, "query")
    assert "it answered HTTP 404: The model `x` does not exist." in said
    assert "`bezel models dev` lists what it serves" in said
    assert "answered by the platform" not in said


@pytest.mark.parametrize(("status", "body", "kind"), [row for row in ANSWERS if row[0] >= 400])
def test_smoke_and_benchmark_say_it_too(cloud: Deployed, status: int, body: str, kind: str) -> None:
    server = ModelServer(cloud)
    server.answers |= {path: answer_of(status, body) for path in PATHS}
    with Server(cloud.server.url, None) as client:
        said = error_text(client.send("GET", "/health"))
    assert said.startswith(f"HTTP {status}: ")
    assert "<" not in said, kind
    ask = asker(Target(cloud.server.url, "gemma", "chat", public=True), dict)
    with pytest.raises(UserError) as refused:
        _served_model(ask, cloud.server.url)
    why = drain(ask, lambda _: None).why
    for text in (str(refused.value), why):
        assert f"HTTP {status}: " in text
        assert "<" not in text
