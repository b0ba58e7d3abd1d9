"""Answers of a model with sense, which random weights do not give: thoughts and tool calls, in all three APIs."""

from __future__ import annotations

import json

import pytest

from bezel_simulated_vllm.scheduling.fake_text import INTRODUCTION
from simulated_vllm_support.samples import events

CHAT = {"model": "tiny-gemma4", "messages": [{"role": "user", "content": "hi"}], "temperature": 0, "max_tokens": 700}
THINKING = CHAT | {"chat_template_kwargs": {"enable_thinking": True}}
PARAMETERS = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in ("look", "other")]
NAMED = {"type": "function", "function": {"name": "other"}}
USAGE = {"stream": True, "stream_options": {"include_usage": True}}


@pytest.fixture(scope="module")
def parsing(serve):
    arguments = ("--enable-auto-tool-choice", "--tool-call-parser=gemma4", "--reasoning-parser=gemma4")
    with serve(
        "/mnt/models/tiny", "--served-model-name=tiny-gemma4", "--max-model-len=4096", *arguments, speed=200.0
    ) as client:
        yield client


@pytest.fixture(scope="module")
def plain(serve):
    with serve("/mnt/models/tiny", "--served-model-name=tiny-gemma4", "--max-model-len=4096", speed=200.0) as client:
        yield client


def chat(client, body):
    response = client.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    return response


@pytest.mark.slow
def test_thoughts_stand_beside_the_answer_and_are_counted(parsing):
    answer = chat(parsing, THINKING).json()
    message, usage = answer["choices"][0]["message"], answer["usage"]
    assert message["reasoning"].strip()
    assert message["content"].strip()
    assert not message["reasoning"].startswith("thought")
    assert 20 < usage["completion_tokens_details"]["reasoning_tokens"] < usage["completion_tokens"] - 40


def test_without_thinking_there_are_no_thoughts(parsing):
    answer = chat(parsing, CHAT).json()
    assert answer["choices"][0]["message"]["reasoning"] is None
    assert answer["usage"]["completion_tokens_details"] == {"reasoning_tokens": 0}


def test_an_answer_says_first_that_no_model_runs(plain):
    """The shortest answers say it whole, of each prompt and seed; what follows differs."""
    bodies = [
        CHAT | {"temperature": 1, "seed": seed, "max_tokens": tokens} for seed, tokens in ((1, 64), (2, 64), (3, 39))
    ]
    contents = [chat(plain, body).json()["choices"][0]["message"]["content"] for body in bodies]
    assert [content[: len(INTRODUCTION)] for content in contents] == [INTRODUCTION] * 3
    assert contents[0] != contents[1]


def test_thoughts_are_no_answer_and_say_nothing_of_it(parsing):
    assert INTRODUCTION not in chat(parsing, THINKING).json()["choices"][0]["message"]["reasoning"]


@pytest.mark.slow
def test_without_a_parser_thoughts_are_part_of_the_text(plain):
    answer = chat(plain, THINKING).json()
    assert answer["choices"][0]["message"]["content"].startswith("thought\n")
    assert answer["usage"]["completion_tokens_details"] is None


def test_an_answer_without_text_is_null_behind_a_parser(parsing, plain):
    """It is an empty text without one."""
    for client, content in ((parsing, None), (plain, "")):
        whole = chat(client, CHAT).json()["choices"][0]["message"]["content"]
        cut = chat(client, CHAT | {"stop": [whole[:4]]}).json()["choices"][0]
        assert cut["finish_reason"] == "stop"
        assert cut["message"]["content"] == content


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_too_long_answer_is_refused_by_the_clients_option_name(plain, name):
    body = {key: value for key, value in CHAT.items() if key != "max_tokens"} | {name: 4097}
    refused = plain.post("/v1/chat/completions", json=body)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == name
    assert refused.json()["error"]["message"].startswith(f"{name}=4097 cannot be greater than max_model_len=4096")


def test_thinking_costs_its_mark_in_the_prompt(parsing):
    count = [chat(parsing, body).json()["usage"]["prompt_tokens"] for body in (CHAT, THINKING)]
    system = [{"role": "system", "content": "be brief"}, *CHAT["messages"]]
    with_system = [
        chat(parsing, body | {"messages": system}).json()["usage"]["prompt_tokens"] for body in (CHAT, THINKING)
    ]
    assert 1 < count[1] - count[0] < 12
    assert with_system[1] - with_system[0] == 1  # the turn is there already


@pytest.mark.slow
def test_streamed_thoughts_come_first_and_make_up_the_same_text(parsing):
    whole = chat(parsing, THINKING).json()["choices"][0]["message"]
    *chunks, last, done = events(chat(parsing, THINKING | USAGE).text)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    kinds = [kind for delta in deltas[1:] for kind in delta]
    assert kinds == sorted(kinds, reverse=True)
    assert set(kinds) == {"reasoning", "content"}
    assert "".join(delta.get("reasoning", "") for delta in deltas) == whole["reasoning"]
    assert "".join(delta.get("content", "") for delta in deltas) == whole["content"]
    assert last["usage"]["completion_tokens_details"]["reasoning_tokens"] > 20
    # The end is a token without text: it closes the choice and says nothing.
    assert chunks[-1]["choices"][0] | {"stop_reason": None, "finish_reason": "stop"} == chunks[-1]["choices"][0]
    assert deltas[-1] == {}
    assert done == "[DONE]"


def test_thoughts_can_be_left_out(parsing):
    body = THINKING | {"include_reasoning": False}
    assert chat(parsing, body).json()["choices"][0]["message"]["reasoning"] is None
    *chunks, _ = events(chat(parsing, body | {"stream": True}).text)
    assert not [chunk for chunk in chunks if "reasoning" in chunk["choices"][0]["delta"]]
    assert chunks[1]["choices"][0]["delta"]["content"]


def test_continuous_usage_counts_thoughts_as_they_come(parsing):
    options = {"include_usage": True, "continuous_usage_stats": True}
    *chunks, last, _ = events(chat(parsing, THINKING | {"stream": True, "stream_options": options}).text)
    counts = [chunk["usage"]["completion_tokens_details"]["reasoning_tokens"] for chunk in chunks]
    assert counts == sorted(counts)
    assert counts[0] == 0 < counts[-1] == last["usage"]["completion_tokens_details"]["reasoning_tokens"]


@pytest.mark.parametrize(("choice", "name", "finish"), [("required", "look", "tool_calls"), (NAMED, "other", "stop")])
def test_a_call_that_is_asked_for_is_made(parsing, choice, name, finish):
    answer = chat(parsing, CHAT | {"tools": TOOLS, "tool_choice": choice}).json()["choices"][0]
    (call,) = answer["message"]["tool_calls"]
    assert (call["type"], call["function"]["name"], json.loads(call["function"]["arguments"])) == (
        "function",
        name,
        {"ok": False},
    )
    assert call["id"].startswith("chatcmpl-tool-")
    assert (answer["message"]["content"], answer["finish_reason"]) == ("", finish)


@pytest.mark.parametrize(("choice", "name", "finish"), [("required", "look", "tool_calls"), (NAMED, "other", "stop")])
def test_a_streamed_call_names_its_tool_once_and_then_its_arguments(parsing, choice, name, finish):
    *chunks, _, _ = events(chat(parsing, CHAT | USAGE | {"tools": TOOLS, "tool_choice": choice}).text)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    first, *rest = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert list(first) == ["id", "type", "index", "function"]
    assert (first["type"], first["index"], first["function"]) == ("function", 0, {"name": name})
    assert all(list(call) == ["index", "function"] for call in rest)
    assert json.loads("".join(call["function"]["arguments"] for call in rest)) == {"ok": False}
    assert len(rest) > 2
    assert (deltas[-1], chunks[-1]["choices"][0]["finish_reason"]) == ({}, finish)
    assert not [delta for delta in deltas if delta.get("content")]


@pytest.mark.parametrize("choice", ["none", "auto"])
def test_a_call_that_is_not_asked_for_is_not_made(parsing, choice):
    answer = chat(parsing, CHAT | {"tools": TOOLS, "tool_choice": choice}).json()["choices"][0]
    assert "tool_calls" not in answer["message"]
    assert answer["message"]["content"]
    assert answer["finish_reason"] == "stop"


def test_the_parser_of_tool_calls_is_counted_by_answer_and_by_piece(parsing):
    def count(text, **labels):
        wanted = {"model_name": "tiny-gemma4", "request_type": "chat_completions"} | labels
        inside = ",".join(f'{key}="{wanted[key]}"' for key in sorted(wanted))
        name = f"vllm:tool_call_parser_invocations_total{{{inside}}} "
        return next(float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name))

    before = parsing.get("/metrics").text
    chat(parsing, CHAT | {"max_tokens": 3})
    chat(parsing, CHAT | {"tools": TOOLS, "tool_choice": "required"})
    *chunks, _ = events(chat(parsing, CHAT | {"max_tokens": 5, "ignore_eos": True, "stream": True}).text)
    after = parsing.get("/metrics").text
    for mode, outcome, more in (
        ("non_streaming", "no_tool_call", 1),
        ("non_streaming", "tool_call", 1),
        ("streaming", "no_tool_call", len(chunks) - 1),
        ("streaming", "tool_call", 0),
    ):
        labels = {"mode": mode, "outcome": outcome}
        assert count(after, **labels) - count(before, **labels) == more, labels


def test_a_server_without_a_parser_counts_none(plain):
    assert "tool_call_parser" not in plain.get("/metrics").text


MESSAGE = {"model": "tiny-gemma4", "max_tokens": 700, "messages": CHAT["messages"], "temperature": 0}
FUNCTION = [{"name": "look", "input_schema": PARAMETERS}]


def typed_events(text: str) -> list[tuple[str, dict]]:
    """Events that name their kind."""
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    rows = [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, data in blocks]
    assert all(data["type"] == kind for kind, data in rows)
    return rows


def test_a_message_has_blocks_of_thinking_text_and_tools(parsing):
    thinking = MESSAGE | {"chat_template_kwargs": {"enable_thinking": True}}
    blocks = parsing.post("/v1/messages", json=thinking).json()["content"]
    assert [block["type"] for block in blocks] == ["thinking", "text"]
    called = parsing.post("/v1/messages", json=MESSAGE | {"tools": FUNCTION, "tool_choice": {"type": "any"}}).json()
    (block,) = called["content"]
    assert (block["type"], block["name"], block["input"], called["stop_reason"]) == (
        "tool_use",
        "look",
        {"ok": False},
        "tool_use",
    )
    named = {"type": "tool", "name": "look"}
    assert (
        parsing.post("/v1/messages", json=MESSAGE | {"tools": FUNCTION, "tool_choice": named}).json()["content"][0][
            "name"
        ]
        == "look"
    )


@pytest.mark.slow
def test_a_streamed_message_opens_and_closes_each_block(parsing):
    thinking = MESSAGE | {"chat_template_kwargs": {"enable_thinking": True}}
    whole = parsing.post("/v1/messages", json=thinking).json()
    streamed = typed_events(parsing.post("/v1/messages", json=thinking | {"stream": True}).text)
    outer = [kind for kind, _ in streamed if kind != "content_block_delta"]
    block = ["content_block_start", "content_block_stop"]
    assert outer == ["message_start", *block, *block, "message_delta", "message_stop"]
    starts = [data["content_block"]["type"] for kind, data in streamed if kind == "content_block_start"]
    assert starts == ["thinking", "text"]
    assert {data["index"] for kind, data in streamed if "index" in data} == {0, 1}
    deltas = [data["delta"] for kind, data in streamed if kind == "content_block_delta"]
    assert "".join(delta.get("thinking", "") for delta in deltas) == whole["content"][0]["thinking"]
    assert "".join(delta.get("text", "") for delta in deltas) == whole["content"][1]["text"]
    assert streamed[-2][1]["usage"] == whole["usage"]
    assert streamed[-2][1]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}


def test_a_streamed_message_writes_a_tools_input(parsing):
    body = MESSAGE | {"tools": FUNCTION, "tool_choice": {"type": "any"}, "stream": True}
    streamed = typed_events(parsing.post("/v1/messages", json=body).text)
    assert streamed[1][1]["content_block"] | {"id": ""} == {"type": "tool_use", "id": "", "name": "look", "input": {}}
    written = [data["delta"]["partial_json"] for kind, data in streamed if kind == "content_block_delta"]
    assert json.loads("".join(written)) == {"ok": False}
    assert streamed[-2][1]["delta"]["stop_reason"] == "tool_use"


RESPONSE = {"model": "tiny-gemma4", "input": "hi", "temperature": 0, "max_output_tokens": 700}
THOUGHTFUL = RESPONSE | {"chat_template_kwargs": {"enable_thinking": True}}


def test_a_response_has_an_item_of_thoughts_and_one_of_text(parsing):
    answer = parsing.post("/v1/responses", json=THOUGHTFUL).json()
    thought, message = answer["output"]
    assert (thought["type"], message["type"], answer["status"]) == ("reasoning", "message", "completed")
    assert thought["content"][0]["text"].strip()
    assert answer["usage"]["output_tokens_details"]["reasoning_tokens"] > 20
    assert answer["incomplete_details"] is None


@pytest.mark.slow
def test_a_streamed_response_numbers_its_events_and_ends_with_the_whole(parsing):
    whole = parsing.post("/v1/responses", json=THOUGHTFUL).json()
    streamed = typed_events(parsing.post("/v1/responses", json=THOUGHTFUL | {"stream": True}).text)
    assert [data["sequence_number"] for _, data in streamed] == list(range(len(streamed)))
    deltas = {f"response.{name}.delta" for name in ("output_text", "reasoning_text")}
    item = ["response.output_item.added", "response.content_part.added"]
    end = ["response.content_part.done", "response.output_item.done"]
    assert [kind for kind, _ in streamed if kind not in deltas] == [
        *("response.created", "response.in_progress", *item, "response.reasoning_text.done", *end),
        *(*item, "response.output_text.done", *end, "response.completed"),
    ]
    text = "".join(data["delta"] for kind, data in streamed if kind == "response.output_text.delta")
    assert text == whole["output"][1]["content"][0]["text"]
    last = streamed[-1][1]["response"]
    assert last["output"][1]["content"] == whole["output"][1]["content"]
    assert last["usage"] == whole["usage"]


FUNCTIONS = [{"type": "function", "name": name, "parameters": PARAMETERS} for name in ("look", "other")]
NAMED_FUNCTION = {"type": "function", "name": "other"}


@pytest.mark.parametrize(("choice", "name"), [("required", "look"), (NAMED_FUNCTION, "other")])
def test_a_response_calls_the_function_that_it_must_call_as_chat_does(parsing, choice, name):
    body = RESPONSE | {"tools": FUNCTIONS, "tool_choice": choice}
    answer = parsing.post("/v1/responses", json=body).json()
    (item,) = answer["output"]
    assert (item["type"], item["name"], item["status"]) == ("function_call", name, "completed")
    assert json.loads(item["arguments"]) == {"ok": False}
    assert (item["id"][:3], item["call_id"][:14]) == ("fc_", "chatcmpl-tool-")
    streamed = typed_events(parsing.post("/v1/responses", json=body | {"stream": True}).text)
    deltas = [data["delta"] for kind, data in streamed if kind == "response.function_call_arguments.delta"]
    assert "".join(deltas) == item["arguments"]
    assert [kind.removeprefix("response.") for kind, _ in streamed if not kind.endswith("arguments.delta")] == [
        *("created", "in_progress", "output_item.added", "function_call_arguments.done"),
        *("output_item.done", "completed"),
    ]
    added, done, last = streamed[2][1]["item"], streamed[-2][1]["item"], streamed[-1][1]["response"]
    assert (added["arguments"], added["status"]) == ("", "in_progress")
    assert last["output"] == [done] == [added | {"arguments": item["arguments"], "status": "completed"}]
    assert last["usage"] == answer["usage"]


@pytest.mark.parametrize("choice", ["required", "auto", NAMED_FUNCTION])
def test_a_response_of_a_server_without_a_tool_parser_is_a_text(plain, choice):
    answer = plain.post("/v1/responses", json=RESPONSE | {"tools": FUNCTIONS, "tool_choice": choice})
    assert answer.status_code == 200
    assert [item["type"] for item in answer.json()["output"]] == ["message"]


@pytest.mark.parametrize("choice", ["auto", "none", {"type": "function", "name": "absent"}])
def test_a_response_with_another_choice_of_tools_is_a_text_or_refused(parsing, choice):
    answer = parsing.post("/v1/responses", json=RESPONSE | {"tools": FUNCTIONS, "tool_choice": choice})
    if isinstance(choice, dict):
        assert answer.status_code == 400
    else:
        assert [item["type"] for item in answer.json()["output"]] == ["message"]


@pytest.mark.slow
def test_a_response_is_not_kept(parsing):
    name = parsing.post("/v1/responses", json=RESPONSE | {"max_output_tokens": 2}).json()["id"]
    assert parsing.get(f"/v1/responses/{name}").status_code == 404


@pytest.mark.slow
def test_scores_are_probabilities_and_cost_a_token_each(parsing):
    body = {"query": "a", "items": ["b", "c", "d"], "label_token_ids": [300]}
    answer = parsing.post("/generative_scoring", json=body).json()
    assert [row["index"] for row in answer["data"]] == [0, 1, 2]
    assert all(0 <= row["score"] < 1 for row in answer["data"])
    assert answer["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([], "list index out of range"),
        ([{"type": "refusal", "refusal": "no"}], "'ResponseOutputRefusal' object has no attribute 'text'"),
    ],
)
def test_earlier_answer_without_a_text_fails_in_responses(plain, content, text):
    answer = {"id": "m", "role": "assistant", "status": "completed", "type": "message", "content": content}
    error = plain.post("/v1/responses", json={"input": [answer], "max_output_tokens": 3})
    assert (error.status_code, error.json()["error"]["message"]) == (500, text)


def test_earlier_answer_with_a_text_is_read_in_responses(plain):
    part = {"type": "output_text", "text": "a", "annotations": []}
    answer = {"id": "m", "role": "assistant", "status": "completed", "type": "message", "content": [part]}
    assert plain.post("/v1/responses", json={"input": [answer], "max_output_tokens": 3}).status_code == 200
