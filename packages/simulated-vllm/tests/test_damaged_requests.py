"""Requests with a damaged part: the server answers each, and none fails in a way that it does not expect."""

from __future__ import annotations

import copy
import json
import logging

import pytest
from hypothesis import given, strategies
from hypothesis import settings as hypothesis_settings

PLAIN = (
    *("/mnt/models/tiny", "--served-model-name=tiny-gemma4", "--max-model-len=256"),
    *("--enable-auto-tool-choice", "--tool-call-parser=gemma4", "--reasoning-parser=gemma4"),
)
TOOL = {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}
CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ASKED = [
    {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    {
        "role": "assistant",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "a", "content": "found"},
]
BASES = {
    "/v1/chat/completions": {
        "messages": ASKED,
        "max_tokens": 2,
        "tools": [{"type": "function", "function": TOOL}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": TOOL["parameters"]}},
        "stream_options": {"include_usage": True},
        "stream": True,
        "stop": ["a"],
        "logit_bias": {"5": 1},
    },
    "/v1/completions": {
        "prompt": ["a"],
        "max_tokens": 2,
        "structured_outputs": {"json": TOOL["parameters"]},
        "vllm_xargs": {"a": 1},
        "repetition_detection": {"max_pattern_size": 2, "min_count": 2},
    },
    "/v1/responses": {
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "max_output_tokens": 2,
        "text": {"format": {"type": "json_schema", "name": "a", "schema": TOOL["parameters"]}},
        "tools": [{"type": "function", **TOOL}],
        "reasoning": {"effort": "low"},
    },
    "/v1/messages": {
        "model": "tiny-gemma4",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "max_tokens": 2,
        "tools": [{"name": "look", "input_schema": TOOL["parameters"]}],
        "tool_choice": {"type": "auto"},
    },
    "/tokenize": {"messages": ASKED, "add_generation_prompt": True},
    "/detokenize": {"tokens": [1, 2]},
    "/generative_scoring": {"query": "a", "items": ["b"], "label_token_ids": [1, 2]},
}


DEEPEST = 8


def deep_list(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


VALUES = strategies.recursive(
    strategies.one_of(
        strategies.none(),
        strategies.booleans(),
        strategies.integers(),
        strategies.sampled_from([2**31, 2**63, 2**64, -(2**63) - 1, 10**400, float("nan"), float("inf"), -0.0]),
        strategies.floats(allow_nan=False),
        strategies.text(max_size=5),
        strategies.sampled_from(["\x00", "\ud800", "a" * 3000, "root ::= (", "(", "{", "function", "json_schema"]),
        strategies.sampled_from([70, 200, 900]).map(deep_list),
    ),
    lambda inner: strategies.one_of(
        strategies.lists(inner, max_size=3),
        strategies.dictionaries(
            strategies.sampled_from(["type", "text", "name", "schema", "json", "$ref", "a", "function", "arguments"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=5,
)


def places_of(node: object, place: tuple = ()) -> list[tuple]:
    """The places of the parts of a body, as deep as those of a whole one."""
    whole = len(place) < DEEPEST
    inner = (
        node.items()
        if isinstance(node, dict) and whole
        else enumerate(node)
        if isinstance(node, list) and whole
        else ()
    )
    return [place, *(part for key, value in inner for part in places_of(value, (*place, key)))]


@strategies.composite
def damaged_bodies(draw) -> tuple[str, object]:
    """A body in which a part or two are another value, left out or new."""
    path = draw(strategies.sampled_from(sorted(BASES)))
    body = copy.deepcopy(BASES[path])
    for _ in range(draw(strategies.integers(1, 2))):
        place = draw(strategies.sampled_from(places_of(body)))
        if not place:
            body[draw(strategies.sampled_from([*sorted(body), "user"]))] = draw(VALUES)
            continue
        node = body
        for key in place[:-1]:
            node = node[key]
        if draw(strategies.integers(0, 5)) == 0:
            del node[place[-1]]
        else:
            node[place[-1]] = draw(VALUES)
    return path, body


@pytest.fixture(scope="module")
def plain(serve):
    with serve(*PLAIN, speed=1000.0) as client:
        yield client


class Failures(logging.Handler):
    """Collects what the HTTP server logs of exceptions that nothing expected."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.texts.append(repr(record.exc_info[1]))


@pytest.fixture
def failures():
    handler = Failures()
    logging.getLogger("uvicorn.error").addHandler(handler)
    yield handler.texts
    logging.getLogger("uvicorn.error").removeHandler(handler)


@pytest.mark.slow
def test_no_damaged_request_ends_in_an_unexpected_failure(plain, failures):
    @hypothesis_settings(max_examples=400)
    @given(damaged_bodies())
    def send(damaged):
        path, body = damaged
        plain.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
        assert failures == [], failures.pop()

    send()


@pytest.mark.parametrize("path", sorted(set(BASES) - {"/detokenize"}))
def test_a_body_of_thousands_of_levels_is_refused(plain, path):
    # From Python 3.12 on its parser reads thousands, and not a hundred thousand.
    for levels, statuses in ((3_000, {200, 400}), (100_000, {400})):
        content = f'{json.dumps(BASES[path])[:-1]}, "more": {"[" * levels}{"]" * levels}}}'
        response = plain.post(path, content=content, headers={"content-type": "application/json"})
        assert response.status_code in statuses
        if response.status_code == 400:
            assert response.json() == {"detail": "There was an error parsing the body"}
        assert plain.post(path, json=BASES[path]).status_code == 200


@pytest.mark.parametrize("arguments", [{"at": "a"}, [], 5, None])
def test_arguments_of_a_call_in_the_history_are_a_text(plain, arguments):
    """Recorded: vLLM 0.32.0 reads the calls of a message late, and refuses them as it refuses a body."""
    call = {**CALL, "function": {"name": "look", "arguments": arguments}}
    chat = {"messages": [ASKED[0], {"role": "assistant", "tool_calls": [call]}, ASKED[2]], "max_tokens": 1}
    response = plain.post("/v1/chat/completions", json=chat)
    assert response.status_code == 400
    start = "3 validation errors:\n  {'type': 'string_type', 'loc': 'body.0.ChatCompletionMessageFunctionToolCallParam."
    assert response.json()["error"]["message"].startswith(start)
    chat["messages"][1]["tool_calls"] = [CALL]
    assert plain.post("/v1/chat/completions", json=chat).status_code == 200
