"""Structured outputs of a request: refused, failed in the engine, not judged and taken, by the server's option."""

from __future__ import annotations

import json

import pytest

from simulated_vllm_support.samples import events

PLAIN = ("/mnt/models/tiny", "--served-model-name=tiny-gemma4", "--max-model-len=4096")
ASKED = [{"role": "user", "content": "hi"}]
CHAT, TEXT, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
BASES = {
    CHAT: {"messages": ASKED, "max_tokens": 2},
    TEXT: {"prompt": "a", "max_tokens": 2},
    RESPONSES: {"input": "hi", "max_output_tokens": 2},
}
LOOKAHEAD = {"type": "string", "pattern": "a(?=b)b"}


@pytest.fixture
def plain(serve):
    with serve(*PLAIN, speed=200.0) as client:
        yield client


def ask(client, path, **more):
    return client.post(path, content=json.dumps(BASES[path] | more), headers={"content-type": "application/json"})


def refusal(response):
    assert response.status_code == 400, response.text
    return response.json()["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize("path", BASES)
def test_a_grammar_that_no_library_takes_is_refused(plain, path):
    message = refusal(ask(plain, path, structured_outputs={"grammar": "root ::= ((("}))
    assert message.startswith("Invalid grammar specification: Failed to convert the grammar from GBNF to Lark: ")


@pytest.mark.parametrize("path", BASES)
def test_a_grammar_that_one_library_takes_is_answered(plain, path):
    assert ask(plain, path, structured_outputs={"grammar": 'root ::= "a" | ("b" "c")*'}).status_code == 200


@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_a_refused_grammar_in_a_stream_is_an_event(plain, path):
    response = ask(plain, path, structured_outputs={"grammar": "root ::= ((("}, stream=True)
    assert response.status_code == 200
    first, last = response.text.strip().split("\n\n")
    assert json.loads(first.removeprefix("data: "))["error"]["code"] == 400
    assert last == "data: [DONE]"
    taken = ask(plain, path, structured_outputs={"grammar": 'root ::= "a"'}, stream=True)
    assert not any("error" in event for event in events(taken.text))


def test_a_schema_is_answered_that_only_xgrammar_takes(plain):
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": LOOKAHEAD}}
    assert ask(plain, CHAT, response_format=form).status_code == 200
    form["json_schema"]["schema"] = {"type": "string", "pattern": "a(?<=b)b"}
    assert "look-around" in refusal(ask(plain, CHAT, response_format=form))


def test_the_option_names_the_library_that_judges(serve):
    schema = {"structured_outputs": {"json": LOOKAHEAD}}
    with serve(*PLAIN, '--structured-outputs-config={"backend": "guidance"}', speed=200.0) as client:
        assert "look-around" in refusal(ask(client, TEXT, **schema))
    with serve(*PLAIN, '--structured-outputs-config={"backend": "xgrammar"}', speed=200.0) as client:
        assert ask(client, TEXT, **schema).status_code == 200
        message = refusal(ask(client, TEXT, structured_outputs={"json": {"type": "integer", "multipleOf": 3}}))
        assert message == "The provided JSON schema contains features not supported by xgrammar."
    with serve(*PLAIN, '--structured-outputs-config={"backend": "outlines"}', speed=200.0) as client:
        message = refusal(ask(client, TEXT, structured_outputs={"grammar": 'root ::= "a"'}))
        assert message == "Outlines structured outputs backend does not support grammar specifications"


def test_the_engine_compiles_with_the_library_of_the_first_request(plain):
    unicode = {"structured_outputs": {"regex": r"\p{L}+"}}  # guidance takes it, xgrammar does not
    assert ask(plain, TEXT, structured_outputs={"regex": "a+"}).status_code == 200
    failed = ask(plain, TEXT, **unicode)
    assert (failed.status_code, failed.json()["error"]["type"]) == (500, "InternalServerError")


def test_a_first_request_of_another_library_is_answered(plain):
    assert ask(plain, TEXT, structured_outputs={"regex": r"\p{L}+"}).status_code == 200


def test_what_is_not_judged_passes_with_a_line_in_the_log(plain, capfd):
    assert "unknown name" in refusal(ask(plain, TEXT, structured_outputs={"grammar": 'start: "b" | nowhere'}))
    assert "not judged" not in capfd.readouterr().out
    grammar = 'start: a\na[temperature=0.5]: "b" | nowhere'
    assert ask(plain, TEXT, structured_outputs={"grammar": grammar}).status_code == 200
    assert "structured outputs are not judged and pass: a rule with attributes of its own" in capfd.readouterr().out


def test_a_long_schema_is_not_judged(plain, capfd):
    schema = {"type": "object", "properties": {f"p{number}": {"type": "text"} for number in range(8000)}}
    assert ask(plain, TEXT, structured_outputs={"json": schema}).status_code == 200
    assert "not judged and pass: longer than is judged" in capfd.readouterr().out


def test_a_structural_tag_is_refused_before_the_engine(plain):
    tag = {"type": "structural_tag", "format": {"type": "tag", "begin": "<a>", "content": {"type": "any_text"}}}
    assert refusal(ask(plain, CHAT, response_format=tag)).startswith("Invalid response_format structural_tag")
    tag["format"]["end"] = "</a>"
    assert ask(plain, CHAT, response_format=tag).status_code == 200


def test_a_dispatch_on_tokens_is_read_by_rules(plain):
    """The library would end the process on it."""
    rules = [[5, {"type": "any_text"}]]
    form = {"type": "repeat", "min": 0, "max": 2, "content": {"type": "token_dispatch", "rules": rules}}
    assert ask(plain, CHAT, response_format={"type": "structural_tag", "format": form}).status_code == 200
    form["min"] = 3
    assert refusal(ask(plain, CHAT, response_format={"type": "structural_tag", "format": form}))


def test_references_in_a_circle_fail_in_the_engine(plain):
    definitions = {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}
    failed = ask(plain, TEXT, structured_outputs={"json": {"$ref": "#/$defs/a", "$defs": definitions}})
    assert failed.status_code == 500
    definitions["b"] = {"type": "object", "properties": {"next": {"$ref": "#/$defs/a"}}}
    assert ask(plain, TEXT, structured_outputs={"json": {"$ref": "#/$defs/a", "$defs": definitions}}).status_code == 200


@pytest.mark.parametrize("schema", [{"type": []}, {"properties": {"a": True}, "required": ["a"]}, {"minLength": "a"}])
def test_a_schema_without_a_usual_form_is_answered(plain, schema):
    choice = ask(plain, TEXT, structured_outputs={"json": schema}, max_tokens=20).json()["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert json.loads(choice["text"]) in ({}, {"a": {}})
