"""Calls of tools with every parser: the answers of a real vLLM are those of the simulated one, and each rule counts."""

from __future__ import annotations

import http.client
import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from bezel_catalog import vllm_options
from bezel_catalog.vllm.servers import recorded_servers
from bezel_simulated_vllm.api.tool_calls import parsers
from bezel_simulated_vllm.configuration.failures import StartError
from simulated_vllm_support import tool_calls
from simulated_vllm_support.shapes import alike
from simulated_vllm_support.tool_calls import called_shape, is_unwritten

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "vocab_size": 2304,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": True,
}
SCHEMA = {"type": "object", "properties": {"place": {"enum": ["here"]}}, "required": ["place"]}
BROKEN = {"type": "object", "properties": {"place": {"type": "thing"}}}
# Parsers by which the server forces no call.
FREE = {"dots", "gemma4", "inkling", "k2_horizon", "minimax_m3", "muse", "muse_glimmer", "musespark1x", "poolside_v1"}
RECORDED = [(release, name) for release in tool_calls.releases() for name in tool_calls.parsers(release)]


def tool(schema=SCHEMA, **values):
    return {"type": "function", "function": {"name": "look", "parameters": schema, **values}}


@pytest.fixture(scope="module")
def llama(mount):
    """The folder of a model of another family than Gemma, without a tokenizer."""
    folder = mount / "llama-of-tools"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(LLAMA))
    (folder / "model.safetensors").write_bytes(b"\0" * 400_000)
    return f"/mnt/models/{folder.name}"


@pytest.fixture
def start(llama, serve):
    def run(parser, **values):
        arguments = ("--served-model-name=tiny", "--max-model-len=2048", "--enable-auto-tool-choice")
        return serve(llama, *arguments, f"--tool-call-parser={parser}", speed=500.0, **values)

    return run


def ask(port, request):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(request.method, request.path, request.content, dict(request.headers))
    response = connection.getresponse()
    answer = called_shape(response.status, response.headers.get("content-type", ""), response.read().decode())
    connection.close()
    return answer


def chat(client, choice="required", tools=None, **values):
    body = {"model": "tiny", "messages": [{"role": "user", "content": "x"}], "temperature": 0, "max_tokens": 60}
    return client.post("/v1/chat/completions", json=body | {"tools": tools or [tool()], "tool_choice": choice} | values)


@pytest.mark.slow
@pytest.mark.parametrize(("release", "parser"), RECORDED)
def test_recorded_requests_are_answered_as_by_the_real_server(start, release, parser):
    wrong = []
    with start(parser, release=release) as client:
        for name, request, real in tool_calls.read(release):
            if name == parser and not alike(real, answer := ask(client.base_url.port, request)):
                wrong.append((request, real, answer))
    assert wrong == []


@pytest.mark.parametrize("release", tool_calls.releases())
def test_recorded_requests_have_calls_and_refusals(release):
    rows = tool_calls.read(release)
    assert len(rows) >= 120
    assert {200, 400, 501} <= {shape[1] for _, _, shape in rows}
    called = Counter(name for name, _, shape in rows if shape[1] == 200 and shape[-1] and shape[-1][0] != "text")
    assert len(called) >= 10


def test_every_parser_of_the_lists_is_registered_in_some_release():
    listed = tomllib.loads(Path(parsers.__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    names = {name for release in recorded_servers() for name in vllm_options(release).registered["tool-call-parser"]}
    assert {name for row in listed.values() for name in row} <= names
    forced = Counter(name for kind in ("tag", "schema", "list") for name in listed[kind])
    assert set(forced.values()) == {1}
    assert names - forced.keys() == FREE


def test_parser_of_no_list_forces_nothing():
    kinds = (parsers.is_forced_by_tag, parsers.is_forced_by_schema, parsers.is_forced_by_list)
    assert not any(kind(name) for kind in kinds for name in (*FREE, "no-parser", None))
    assert [parsers.is_forced_by_tag("hermes"), parsers.is_forced_by_schema("hermes")] == [True, False]


@pytest.mark.parametrize(
    ("parser", "strict", "message"),
    [
        ("hermes", True, "Invalid grammar specification: 'triggers'"),
        ("hermes", None, ""),
        ("internlm", None, "Grammar error: Invalid type: thing"),
        ("mistral", None, "Grammar error: Invalid type: thing"),
        ("gemma4", True, ""),
    ],
)
def test_broken_schema_is_refused_by_what_the_parser_forces(start, parser, strict, message):
    with start(parser) as client:
        answer = chat(client, tools=[tool(BROKEN, strict=strict)])
    assert answer.status_code == (400 if message else 200)
    assert not message or answer.json()["error"]["message"] == message


def test_strict_tool_is_checked_where_the_model_chooses(start):
    with start("qwen3_coder") as client:
        assert chat(client, "auto", [tool(BROKEN, strict=True)]).status_code == 400
        assert chat(client, "auto", [tool(BROKEN)]).status_code == 200
        assert chat(client, "none", [tool(BROKEN, strict=True)]).status_code == 200


def test_ids_of_calls_are_of_the_parsers_form(start):
    earlier = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function",
               "function": {"name": "look", "arguments": "{}"}}]}  # fmt: skip
    messages = [{"role": "user", "content": "x"}, earlier, {"role": "tool", "tool_call_id": "a", "content": "y"}]
    ids = {}
    for parser in ("kimi_k2", "mistral", "hermes"):
        with start(parser) as client:
            message = chat(client, messages=messages).json()["choices"][0]["message"]
            ids[parser] = message["tool_calls"][0]["id"]
    assert ids["kimi_k2"] == "functions.look:1"
    assert len(ids["mistral"]) == 9
    assert ids["hermes"].startswith("chatcmpl-tool-")


def test_definitions_that_differ_cannot_be_joined(start):
    one, other = ({"type": "object", "$defs": {"a": {"type": kind}}} for kind in ("string", "integer"))
    tools = [tool(one), {"type": "function", "function": {"name": "other", "parameters": other}}]
    with start("internlm") as client:
        refused, taken = chat(client, tools=tools), chat(client, tools=[tools[0]])
    assert "Tool definition 'a' has multiple schemas" in refused.json()["error"]["message"]
    assert taken.status_code == 200


def test_parser_needs_the_tokens_of_its_family(llama, mount, settings):
    line = (llama, "--max-model-len=2048", "--enable-auto-tool-choice", "--tool-call-parser=deepseek_v3")
    tokenizer = mount / "llama-of-tools" / "tokenizer.json"
    try:
        for added, starts in (
            (["<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"], True),
            ([], False),
        ):
            entries = [{"id": 9 + number, "content": token} for number, token in enumerate(added)]
            tokenizer.write_text(json.dumps({"model": {"vocab": {"a": 0}}, "added_tokens": entries}))
            if starts:
                assert settings(*line).tool_parser == "deepseek_v3"
            else:
                with pytest.raises(StartError, match="could not locate tool call start/end tokens"):
                    settings(*line)
    finally:
        tokenizer.unlink()


def test_left_out_call_is_told_from_a_wrong_one():
    _, request, _ = next(row for row in tool_calls.read("0.32.0") if row[1].kind == "required")
    call = [[["chatcmpl-tool-N", "look", {}]], "tool_calls", ""]
    written, text = ["application/json", 200, {}, [call]], ["application/json", 200, {}, ["text"]]
    assert is_unwritten(request, text, written)
    assert not is_unwritten(request, written, text)
    assert not is_unwritten(request, ["application/json", 400, {}, "refused"], written)
