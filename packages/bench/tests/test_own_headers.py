"""A user's own headers: sent with each request, beside an identity too, and in no result and no message."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench_support.http_server import Answer, Call, Server, serving
from bezel_base.errors import UserError
from bezel_bench.commands.main import main
from bezel_bench.commands.measure.own_headers import own_headers
from bezel_bench.commands.measure.target import renewals, with_own

KEY = "sk-Pl4ntedKeyValue0123"


def test_a_key_of_the_environment_is_a_bearer_token_beside_other_headers() -> None:
    headers = own_headers("KEY", ["X-Tenant: blue", "X-Empty:", "X-Colon: a:b"], {"KEY": f" {KEY}\n"})
    assert headers == {"X-Tenant": "blue", "X-Empty": "", "X-Colon": "a:b", "Authorization": f"Bearer {KEY}"}
    assert own_headers(None, [], {}) == {}


@pytest.mark.parametrize(
    ("variable", "headers", "message"),
    [
        ("KEY", [], "--api-key-env KEY"),
        (KEY, [], "not a variable's name"),
        (None, ["no colon"], "--header number 1"),
        (None, ["X-A: 1", f"bad name: {KEY}"], "--header number 2"),
        (None, [f"X-A: {KEY}\r\nHost: evil"], "--header number 1"),
        (None, ["Content-Length: 3"], "the client sets it"),
        (None, ["X-A: 1", "x-a: 2"], "it is given twice"),
    ],
)
def test_what_cannot_be_sent_is_refused_without_its_value(
    variable: str | None, headers: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message) as refused:
        own_headers(variable, headers, {})
    assert KEY not in str(refused.value)


def test_a_key_and_an_authorization_exclude_each_other() -> None:
    with pytest.raises(UserError, match="--api-key-env sets it too"):
        own_headers("KEY", ["authorization: Basic x"], {"KEY": KEY})


class Failing:
    """An identity whose renewal failed twice."""

    failures = 2

    def __call__(self) -> dict[str, str]:
        return {"Authorization": "Bearer identity"}


def test_an_identity_stands_beside_a_key_and_its_failures_are_counted() -> None:
    both = with_own(Failing(), {"Authorization": f"Bearer {KEY}"})
    assert both() == {"Authorization": f"Bearer {KEY}", "X-Serverless-Authorization": "Bearer identity"}
    assert renewals(both) == renewals(Failing()) != []
    assert with_own(Failing(), {"X-A": "1"})() == {"Authorization": "Bearer identity", "X-A": "1"}
    assert with_own(dict, {}) is dict


class Vllm:
    """A server that answers with three tokens, to those who have the key."""

    def __init__(self, server: Server) -> None:
        self.url = server.url
        self.calls: list[Call] = []
        server.routes.append(self.answer)

    def answer(self, call: Call) -> Answer:
        self.calls.append(call)
        if call.headers.get("authorization") != f"Bearer {KEY}":
            return Answer(status=401, json={"error": "Unauthorized"})
        if call.path == "/v1/models":
            return Answer(json={"data": [{"id": "m", "max_model_len": 4096}]})
        if call.path != "/v1/chat/completions":
            return Answer(status=404, json={})
        events = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in ("a", "b", "c")]
        usage = {"prompt_tokens": 16, "completion_tokens": 3, "total_tokens": 19}
        events.append({"choices": [], "usage": usage})
        chunks: list[bytes | float] = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
        return Answer(headers={"Content-Type": "text/event-stream"}, chunks=[*chunks, b"data: [DONE]\n\n"])


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Vllm]:
    monkeypatch.setenv("SERVER_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    with serving() as server:
        yield Vllm(server)


def bench(vllm: Vllm, *arguments: str) -> int:
    command = (
        "run",
        "--url",
        f"{vllm.url}/v1",
        "--requests",
        "4",
        "--input-tokens",
        "16",
        "--output-tokens",
        "3",
    )
    return main([*command, *arguments])


@pytest.mark.slow
def test_a_server_with_a_key_is_measured_and_no_file_or_line_has_the_key(
    vllm: Vllm, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bench(vllm, "--api-key-env", "SERVER_KEY", "--header", "X-Tenant: blue", "--out", "r.json")
    posts = [call for call in vllm.calls if call.path == "/v1/chat/completions"]
    assert len(posts) >= 4
    assert {call.headers["x-tenant"] for call in posts} == {"blue"}
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["cells"][0]["metrics"]["requests_per_second"]["value"] > 0
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    output = capfd.readouterr()
    assert KEY not in output.out + output.err


@pytest.mark.slow
def test_a_result_is_replaced_only_if_that_is_asked_for(
    vllm: Vllm, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r.json"
    out.write_text("mine")
    assert bench(vllm, "--api-key-env", "SERVER_KEY", "--out", "r.json") == 1
    assert "add --force" in capfd.readouterr().err
    assert (out.read_text(), vllm.calls) == ("mine", [])
    bench(vllm, "--api-key-env", "SERVER_KEY", "--out", "r.json", "--force")
    assert json.loads(out.read_text())["cells"]


def test_a_load_without_users_is_a_mistake_of_the_command_line(vllm: Vllm, capfd: pytest.CaptureFixture[str]) -> None:
    assert bench(vllm, "--api-key-env", "SERVER_KEY", "--users", "0") == 2
    assert "--users" in capfd.readouterr().err
