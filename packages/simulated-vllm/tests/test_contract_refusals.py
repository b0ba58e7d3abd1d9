"""Bodies that a real vLLM refuses although their fields have the right types, and ones that it accepts."""

from __future__ import annotations

import json

import pytest

SERVER = "parsers"
JSON = {"content-type": "application/json"}
ASKED = [{"role": "user", "content": "hi"}]
BODIES = {
    "/v1/chat/completions": {"messages": ASKED, "max_tokens": 2},
    "/v1/completions": {"prompt": "a", "max_tokens": 2},
    "/v1/responses": {"input": "hi", "max_output_tokens": 2},
    "/v1/messages": {"model": "tiny-gemma4", "messages": ASKED, "max_tokens": 2},
}
CHAT, TEXT, RESPONSES, MESSAGES = BODIES
TOOL = {"type": "function", "function": {"name": "look"}}
OUT_OF_VOCABULARY = "token_id(s) [99999] in {} contain out-of-vocab token ids. Vocabulary size: 2048"
REFUSED = [
    (CHAT, {"tools": []}, "`tools` must not be an empty array."),
    (CHAT, {"tools": [TOOL], "tool_choice": "nosuch"}, "Invalid value for `tool_choice`: nosuch!"),
    (CHAT, {"tools": [{"type": "function"}]}, "1 validation error:\n  {'type': 'missing', 'loc': 'body.tools.0.f"),
    (CHAT, {"stop": ["a"] * 5}, "2 validation errors:\n  {'type': 'string_type', 'loc': 'body.stop'"),
    (CHAT, {"messages": [{"role": "user", "content": None}]}, "19 validation errors:"),
    (CHAT, {"messages": [{"role": "user", "content": 5}]}, "22 validation errors:"),
    (CHAT, {"messages": [{"role": "user", "content": "\ud800"}]}, "TextEncodeInput must be Union"),
    (CHAT, {"reasoning_effort": "nosuch"}, "1 validation error:\n  {'type': 'literal_error'"),
    (CHAT, {"seed": 2**70}, "1 validation error:\n  {'type': 'less_than_equal', 'loc': 'body.seed'"),
    (CHAT, {"logprobs": True, "top_logprobs": -2}, "`top_logprobs` must be a positive value or -1."),
    (CHAT, {"chat_template": "x"}, "Chat template is passed with request, but --trust"),
    (CHAT, {"mm_processor_kwargs": {"a": 1}}, "Per-request mm_processor_kwargs are disabled by default"),
    (CHAT, {"cache_salt": ""}, "Parameter 'cache_salt' must be a non-empty string if provided."),
    (CHAT, {"truncate_prompt_tokens": -5}, "1 validation error:\n  {'type': 'greater_than_equal'"),
    (CHAT, {"continue_final_message": True, "add_generation_prompt": True}, "Cannot set both `continue_final_message`"),
    (CHAT, {"structured_outputs": {"json": {"type": "nosuch"}}}, "Grammar error: Invalid type: nosuch"),
    (CHAT, {"structured_outputs": {"json": {}, "regex": "a"}}, "You can only use one kind of constraints"),
    (CHAT, {"structured_outputs": {}}, "You must use one kind of structured outputs constraint but none"),
    (TEXT, {"structured_outputs": {"regex": "("}}, 'Grammar error: at 1(8): invalid regex "("'),
    (TEXT, {"structured_outputs": {"grammar": "x"}}, "Invalid grammar specification: Failed to convert"),
    (TEXT, {"structured_outputs": {"choice": []}}, "Choice '[]' cannot be an empty list"),
    (TEXT, {"logit_bias": {"x": 1}}, "logit_bias contains key(s) that cannot be converted"),
    (TEXT, {"logit_bias": {"99999": 1}}, OUT_OF_VOCABULARY.format("logit_bias")),
    (TEXT, {"stop_token_ids": "5"}, "1 validation error:\n  {'type': 'list_type'"),
    (TEXT, {"stop_token_ids": [99999]}, OUT_OF_VOCABULARY.format("stop_token_ids")),
    (TEXT, {"allowed_token_ids": []}, "allowed_token_ids is not None and empty!"),
    (TEXT, {"prompt_embeds": "AAAA"}, "You must set `--enable-prompt-embeds` to input `prompt_embeds`."),
    (TEXT, {"prompt": [-1]}, "4 validation errors:"),
    (TEXT, {"prompt": ["a", ""]}, "The decoder prompt cannot be empty"),
    (
        TEXT,
        {"prompt": [300] * 5000},
        "This model's maximum context length is 4096 tokens. However, your prompt contains 50",
    ),
    (TEXT, {"n": 100000}, "n must be at most 16384, got 100000."),
    (RESPONSES, {"include": ["nosuch"]}, "1 validation error:\n  {'type': 'literal_error'"),
    (RESPONSES, {"input": [{"type": "item_reference", "id": "x"}]}, "Unsupported input item type: item_reference"),
    (
        MESSAGES,
        {"thinking": {"type": "enabled", "budget_tokens": 100}},
        "1 validation error:\n  {'type': 'greater_than_equal'",
    ),
]


@pytest.mark.parametrize(("path", "changed", "text"), REFUSED)
def test_a_body_is_refused_with_the_recorded_reason(servers, path, changed, text):
    response = servers(SERVER).post(path, content=json.dumps(BODIES[path] | changed), headers=JSON)
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith(text)


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        *((path, {}) for path in BODIES),
        (CHAT, {"stop": ["a"] * 4}),
        (CHAT, {"tools": None}),
        (CHAT, {"messages": [{"role": "nosuch", "content": "a"}]}),
        (CHAT, {"use_beam_search": True, "n": 2}),
        (TEXT, {"echo": True, "max_tokens": 0}),
        (TEXT, {"structured_outputs": {"regex": "[a-z]+"}}),
        (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]}),
    ],
)
def test_what_the_real_server_accepts_is_accepted(servers, path, changed):
    assert servers(SERVER).post(path, json=BODIES[path] | changed).status_code == 200


def test_the_engines_refusal_is_inside_a_stream_and_the_apis_before_it(servers):
    refused = {"stream": True, "allowed_token_ids": []}
    response = servers(SERVER).post(TEXT, json=BODIES[TEXT] | refused)
    first, last = response.text.strip().split("\n\n")
    assert (response.status_code, last) == (200, "data: [DONE]")
    assert json.loads(first.removeprefix("data: "))["error"]["param"] == "allowed_token_ids"
    assert servers(SERVER).post(TEXT, json=BODIES[TEXT] | {"stream": True, "temperature": -1}).status_code == 400


def test_a_response_echoes_its_form_tools_and_probabilities(servers):
    form = {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}
    asked = {"text": form, "tools": [{"type": "function", "name": "look", "parameters": {}}], "truncation": "auto"}
    more = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
    answer = servers(SERVER).post(RESPONSES, json=BODIES[RESPONSES] | asked | more).json()
    assert answer["text"]["format"]["schema"] == {"type": "object"}
    assert (answer["tools"][0]["name"], answer["tool_choice"], answer["truncation"]) == ("look", "auto", "auto")
    assert answer["top_logprobs"] == 2
    plain = servers(SERVER).post(RESPONSES, json=BODIES[RESPONSES]).json()
    assert (plain["text"], plain["tools"], plain["tool_choice"], plain["top_logprobs"]) == (None, [], "none", None)
