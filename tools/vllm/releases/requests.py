"""Requests of clients to a vLLM server, made from a seed: conversations, options, wrong bodies, other routes.

Each is a whole HTTP request, as a client's library or a proxy would send it, not the variation of one field that
`generated_requests` makes. The same seed gives the same requests. Prompts and limits are short: a server on a CPU
answers each within a second.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from simulated_vllm_support.client_requests import Asked

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT, SEED = 400, 44
MODEL = "tiny-gemma4"
_JSON = (("content-type", "application/json"),)
_WORDS = ("river", "stone", "lamp", "seven", "green", "ocean", "paper", "quiet", "under", "music", "north", "glass")
_TOOLS = ("get_weather", "search", "add", "open_door", "translate")


def requests_of_clients(count: int = COUNT, seed: int = SEED) -> list[Asked]:
    """Return that many different requests, each kind about equally often."""
    rng = random.Random(seed)  # noqa: S311 - the same requests each time
    asked: list[Asked] = []
    seen: set[Asked] = set()
    kinds = list(KINDS.items())
    while len(asked) < count:
        for kind, make in kinds:
            request = make(rng)
            whole = Asked(kind, request.method, request.path, request.headers, request.content)
            if len(asked) < count and whole not in seen:
                seen.add(whole)
                asked.append(whole)
    return asked


def _post(path: str, body: object, *headers: tuple[str, str]) -> Asked:
    return Asked("", "POST", path, (*_JSON, *headers), json.dumps(body).encode())


def _text(rng: random.Random, most: int = 9) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(rng.randint(1, most)))


def _choose(rng: random.Random, *bodies: dict[str, Any]) -> dict[str, Any]:
    return rng.choice(bodies)


def _conversation(rng: random.Random) -> list[dict[str, Any]]:
    messages = [{"role": "system", "content": _text(rng)}] if rng.random() < 0.4 else []
    for _ in range(rng.randint(0, 2)):
        messages += [{"role": "user", "content": _text(rng)}, {"role": "assistant", "content": _text(rng)}]
    content: Any = _text(rng)
    if rng.random() < 0.3:
        content = [{"type": "text", "text": _text(rng)} for _ in range(rng.randint(1, 3))]
    return [*messages, {"role": "user", "content": content}]


def _chat(rng: random.Random, **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": _conversation(rng), "max_tokens": rng.randint(1, 12)} | more


def _completion(rng: random.Random, **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "prompt": _text(rng), "max_tokens": rng.randint(1, 12)} | more


def _sampling(rng: random.Random) -> dict[str, Any]:
    values: dict[str, Any] = {
        "temperature": rng.choice((0, 0.2, 0.7, 1, 1.9)),
        "top_p": rng.choice((0.1, 0.9, 1)),
        "top_k": rng.choice((-1, 0, 1, 40)),
        "min_p": rng.choice((0, 0.05)),
        "presence_penalty": rng.choice((-1.5, 0, 0.5)),
        "frequency_penalty": rng.choice((-2, 0, 1)),
        "repetition_penalty": rng.choice((0.9, 1, 1.3)),
        "seed": rng.randint(0, 99),
        "stop": rng.choice((["river"], "x", ["a", "b"], [])),
        "min_tokens": rng.choice((0, 1)),
        "ignore_eos": rng.choice((True, False)),
        "logit_bias": {"5": rng.choice((-100, 3))},
        "user": _text(rng, 1),
    }
    return {name: values[name] for name in rng.sample(list(values), rng.randint(2, 6))}


def _stream(rng: random.Random) -> dict[str, Any]:
    options = {"include_usage": rng.random() < 0.6}
    if rng.random() < 0.3:
        options["continuous_usage_stats"] = True
    return {"stream": True} | ({"stream_options": options} if rng.random() < 0.6 else {})


def _wrong_value(rng: random.Random) -> dict[str, Any]:
    name, values = rng.choice([
        ("temperature", (-1, 2.5, "hot", [1], None, 1e999)),
        ("top_p", (0, 1.2, -0.1, "p")),
        ("max_tokens", (0, -3, "many", 1.5, 10**30, 300)),
        ("n", (0, -1, "two", 1.5)),
        ("stop", (5, [5], ["a", ""], {"a": 1})),
        ("logit_bias", ({"a": 1}, {"99999999": 1}, [1], {"1": "x"})),
        ("presence_penalty", (3, "x", -2.1)),
        ("seed", (1.5, "s", 2**70, -(2**63))),
        ("min_tokens", (-1, 999, "x")),
        ("stream", ("maybe", 2, [True])),
        ("stop_token_ids", ([-1], ["x"], 5, [10**9])),
        ("bad_words", ("x", [""], [1])),
        ("priority", ("high", 1.5, 2**64)),
        ("truncate_prompt_tokens", (-2, 0, 300, "x")),
        ("allowed_token_ids", ([], [10**9], "x")),
        ("stream_options", ({"include_usage": True}, "x", {"include_usage": "often"})),
        ("cache_salt", ("", 5, "a" * 200, "a/b")),
        ("thinking_token_budget", (-5, "x", 3)),
        ("top_k", (-7, 1.5, "x")),
        ("repetition_penalty", (0, -1, "x")),
    ])  # fmt: skip
    return {name: rng.choice(values)}


def _tool(rng: random.Random) -> dict[str, Any]:
    parameters: dict[str, Any] = {"type": "object", "properties": {"place": {"type": "string"}}}
    if rng.random() < 0.5:
        parameters["required"] = ["place"]
    return {"type": "function", "function": {"name": rng.choice(_TOOLS), "parameters": parameters}}


def _tool_history(rng: random.Random) -> list[dict[str, Any]]:
    """Return a conversation with a call of a tool, in forms that libraries send and vLLM takes or refuses."""
    arguments = rng.choice(('{"place": "here"}', {"place": "here"}, "{}", "", "no json", None, ["a"], 5))
    function: dict[str, Any] = {"name": rng.choice(_TOOLS), "arguments": arguments}
    if rng.random() < 0.15:
        function.pop("arguments")
    call: dict[str, Any] = {"id": f"call_{rng.randint(1, 9)}", "type": "function", "function": function}
    return [
        {"role": "user", "content": _text(rng)},
        {"role": "assistant", "content": rng.choice((None, "", "calling")), "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": rng.choice((_text(rng), "", '{"ok": true}'))},
        {"role": "user", "content": _text(rng)},
    ]


def _parts(rng: random.Random) -> list[Any]:
    pixel = "data:image/png;base64,iVBORw0KGgo="
    part: Any = rng.choice([
        {"type": "image_url", "image_url": pixel},
        {"type": "image_url", "image_url": {"url": pixel}},
        {"type": "image_url", "image_url": {"url": pixel, "detail": "low"}},
        {"type": "image_url"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "audio_url", "audio_url": {"url": "data:audio/wav;base64,AAAA"}},
        {"type": "video_url", "video_url": "x"},
        {"type": "text", "text": 5},
        {"type": "text"},
        {"type": "sketch", "sketch": "x"},
        {"text": "no type"},
        "plain text",
        {"type": "refusal", "refusal": "no"},
        {"type": "input_image", "image_url": pixel},
    ])  # fmt: skip
    return [{"type": "text", "text": _text(rng)}, part]


def _deep(rng: random.Random) -> Asked:
    depth = rng.choice((50, 900, 3000, 20_000))
    path = rng.choice(("/v1/chat/completions", "/v1/completions", "/tokenize", "/v1/responses", "/v1/messages"))
    opened, closed = rng.choice((("[", "]"), ('{"a":', "}")))
    inner = f"{opened * depth}1{closed * depth}"
    return Asked("", "POST", path, _JSON, f'{{"model":"{MODEL}","prompt":"a","metadata":{inner}}}'.encode())


def _broken_body(rng: random.Random) -> Asked:
    path = rng.choice(("/v1/chat/completions", "/v1/completions", "/tokenize", "/v1/responses", "/v1/messages"))
    text = rng.choice([
        b"", b"{", b"[]", b"null", b"true", b'"text"', b"5", b"{}", b'{"model": }', b"\xff\xfe", b'{"a": "\\ud800"}',
        b'{"model":"tiny-gemma4",}', b"NaN", b'{"prompt": NaN}', b'{"prompt":"a"}{"b":1}', b"\xef\xbb\xbf{}",
    ])  # fmt: skip
    kind = rng.choice(("application/json", "application/json; charset=utf-8", "text/plain", "", "APPLICATION/JSON"))
    return Asked("", "POST", path, (("content-type", kind),) if kind else (), text)


_ROUTES = (
    *("/", "/v1", "/v1/models", "/v1/models/tiny-gemma4", "/health", "/ping", "/version", "/load", "/docs", "/redoc"),
    *("/docs/oauth2-redirect", "/openapi.json", "/v1/embeddings", "/v1/realtime", "/v1/audio/transcriptions"),
    *("/metrics/", "/v1/chat/completions/", "/v1/completions", "/server_info", "/v1/rerank", "/pooling", "/score"),
    *("/is_scaling_elastic_ep", "/kv_event_sources", "/v1/responses/resp_1", "/v1/messages", "/v1/systemone"),
    *("/v1/chat/completions/batch", "/invocations", "/tokenize", "/detokenize", "/tokenizer_info", "/v1/batches"),
    *("/sleep", "/wake_up", "/reset_prefix_cache", "/v1/load_lora_adapter", "/classify", "/inference/v1/generate"),
    *("/v1/files", "/v1/decisions", "/v1/completions/render", "/favicon.ico", "/V1/models", "//v1/models"),
)


def _route(rng: random.Random) -> Asked:
    method = rng.choice(("GET", "GET", "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"))
    path = rng.choice(_ROUTES)
    content = b"{}" if method in ("POST", "PUT", "PATCH") else b""
    return Asked("", method, path, _JSON if content else (), content)


def _batch(rng: random.Random) -> Asked:
    wrong = _choose(rng, {}, {}, {"n": 2}, {"use_beam_search": True}, {"stream": True}, {"tools": [_tool(rng)]},
                        {"messages": []}, {"messages": [[]]}, {"logprobs": True, "top_logprobs": 1},
                        {"messages": [{"role": "user", "content": "flat"}]}, {"echo": True},
                        {"max_tokens": 0})  # fmt: skip
    body = {"model": MODEL, "messages": [_conversation(rng) for _ in range(rng.randint(1, 3))], "max_tokens": 4}
    return _post("/v1/chat/completions/batch", body | wrong)


def _systemone(rng: random.Random) -> Asked:
    question = rng.choice((
        {"type": "choice", "instructions": _text(rng), "criteria": {"a": "first", "b": None}},
        {"type": "noul"}, {"type": "score", "criteria": ["low", "high"]}, {"type": "riddle"}, {},
        {"type": "choice", "criteria": []}, {"type": "choice", "criteria": {"a": None}, "more": 1},
    ))  # fmt: skip
    wrong = _choose(rng, {}, {}, {"questions": {}}, {"questions": []}, {"extra": 1}, {"images": ["x"]}, {"model": "x"},
                        {"joint": True})  # fmt: skip
    body: dict[str, Any] = {"model": MODEL, "state": rng.choice((_text(rng), {"a": 1})), "questions": {"q": question}}
    if rng.random() < 0.1:
        body.pop("state")
    return _post("/v1/systemone", body | wrong)


def _decision(rng: random.Random) -> Asked:
    question = rng.choice((
        {"type": "predicate", "instructions": _text(rng)},
        {"type": "predicate", "instructions": _text(rng), "name": "n"},
        {"type": "choice", "instructions": _text(rng), "choices": [{"value": "a"}, {"value": True}]},
        {"type": "choice", "instructions": "x", "choices": [{"value": "a"}]},
        {"type": "score", "instructions": "x", "levels": [{"label": "low"}, {"label": "high"}]},
        {"type": "riddle"}, {"type": "predicate", "instructions": 5}, {},
    ))  # fmt: skip
    wrong: dict[str, Any] = rng.choice(
        ({}, {}, {}, {"questions": []}, {"extra": 1}, {"joint": True}, {"model": "x"}, {"input": 5})
    )
    return _post("/v1/decisions", {"model": MODEL, "input": _text(rng), "questions": [question]} | wrong)


def _response(rng: random.Random) -> Asked:
    items: Any = rng.choice((
        _text(rng), [{"role": "user", "content": _text(rng)}],
        [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": _text(rng)}]}],
        [{"role": "user", "content": "a"}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
         {"type": "function_call_output", "call_id": "c", "output": "x"}],
        [], 5, [{"type": "riddle"}], [{"role": "user"}],
    ))  # fmt: skip
    more = _choose(rng, {}, {}, {"instructions": _text(rng)}, {"stream": True}, {"stream": True}, {"temperature": 0.5},
                       {"prompt_cache_key": "k"}, {"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "huge"}},
                       {"text": {"format": {"type": "text"}}}, {"include": ["message.output_text.logprobs"]},
                       {"previous_response_id": "resp_x"}, {"store": True}, {"background": True},
                       {"truncation": "auto"}, {"max_tool_calls": 1}, {"prompt_cache_retention": "24h"},
                       {"safety_identifier": "u"}, {"metadata": {"a": "b"}}, {"parallel_tool_calls": False},
                       {"top_logprobs": 2, "include": ["message.output_text.logprobs"]})  # fmt: skip
    return _post("/v1/responses", {"model": MODEL, "input": items, "max_output_tokens": rng.randint(1, 9)} | more)


def _message(rng: random.Random) -> Asked:
    more = _choose(rng, {}, {}, {"stream": True}, {"stream": True}, {"system": _text(rng)}, {"max_tokens": 0},
                       {"system": [{"type": "text", "text": "s"}]}, {"stop_sequences": ["a"]}, {"model": "other"},
                       {"temperature": 3}, {"tools": [{"name": "f", "input_schema": {"type": "object"}}]},
                       {"tool_choice": {"type": "tool"}}, {"thinking": {"type": "enabled", "budget_tokens": 2000}},
                       {"thinking": {"type": "disabled"}}, {"messages": []}, {"top_k": -3}, {"max_tokens": 999},
                       {"metadata": {"user_id": "u"}}, {"messages": [{"role": "system", "content": "x"}]})  # fmt: skip
    content = rng.choice((_text(rng), [{"type": "text", "text": _text(rng)}]))
    body = {"model": MODEL, "max_tokens": rng.randint(1, 9), "messages": [{"role": "user", "content": content}]}
    path = rng.choice(("/v1/messages", "/v1/messages", "/v1/messages/count_tokens"))
    if path.endswith("count_tokens"):
        body.pop("max_tokens")
        more = {name: value for name, value in more.items() if name not in ("max_tokens", "stream", "temperature")}
    return _post(path, body | more)


def _tokens(rng: random.Random) -> Asked:
    path, body = rng.choice([
        ("/tokenize", {"prompt": _text(rng)}), ("/tokenize", {"messages": _conversation(rng)}),
        ("/tokenize", {"prompt": _text(rng), "return_token_strs": True}), ("/tokenize", {"prompt": 5}),
        ("/tokenize", {"messages": [{"role": "user", "content": _text(rng)}], "continue_final_message": True}),
        ("/detokenize", {"tokens": [rng.randint(1, 900) for _ in range(rng.randint(0, 5))]}),
        ("/detokenize", {"tokens": ["a"]}), ("/detokenize", {"tokens": [-1]}), ("/tokenize", {}),
        ("/tokenize", {"prompt": _text(rng), "model": "other"}), ("/detokenize", {"tokens": [2**70]}),
        ("/generative_scoring", {"query": _text(rng), "items": [_text(rng)], "label_token_ids": [5, 6]}),
        ("/generative_scoring", {"query": "a", "items": [], "label_token_ids": [5]}),
        ("/invocations", _completion(rng)), ("/invocations", _chat(rng)), ("/invocations", [1]),
    ])  # fmt: skip
    return _post(path, body)


def _beams(rng: random.Random) -> Asked:
    more: dict[str, Any] = {"use_beam_search": True, "n": rng.randint(1, 3), "max_tokens": rng.randint(1, 4)}
    more |= rng.choice(({}, {"stream": True}, {"logprobs": True}, {"length_penalty": 0.5}, {"temperature": 0}))
    if rng.random() < 0.5:
        return _post("/v1/chat/completions", _chat(rng) | more)
    more |= {"logprobs": 1} if more.pop("logprobs", None) else {}
    return _post("/v1/completions", _completion(rng) | more)


def _headers(rng: random.Random) -> Asked:
    header = rng.choice((
        ("x-data-parallel-rank", str(rng.choice((0, 1, 3, -1, "x")))), ("x-request-id", _text(rng, 1)),
        ("authorization", "Bearer nothing"), ("accept", "text/event-stream"), ("x-session-id", _text(rng, 1)),
        ("content-encoding", "gzip"), ("priority", "u=1"), ("traceparent", "00-1-1-01"),
    ))  # fmt: skip
    path, make = rng.choice((("/v1/chat/completions", _chat), ("/v1/completions", _completion)))
    return _post(path, make(rng), header)


def _logprobs(rng: random.Random) -> Asked:
    if rng.random() < 0.5:
        more = _choose(rng, {"logprobs": True}, {"logprobs": True, "top_logprobs": 3}, {"top_logprobs": 2},
                           {"logprobs": True, "top_logprobs": 50}, {"prompt_logprobs": 1}, {"logprobs": "yes"},
                           {"logprobs": True, "stream": True, "top_logprobs": 1})  # fmt: skip
        return _post("/v1/chat/completions", _chat(rng) | more)
    more = rng.choice(({"logprobs": 0}, {"logprobs": 3}, {"logprobs": -1}, {"echo": True, "logprobs": 1},
                       {"logprobs": 2, "stream": True}, {"prompt_logprobs": 2}, {"echo": True, "max_tokens": 0},
                       {"prompt_logprobs": 1, "stream": True}, {"logprobs": 99}))  # fmt: skip
    return _post("/v1/completions", _completion(rng) | more)


def _prompt(rng: random.Random) -> Asked:
    prompt: Any = rng.choice((
        [_text(rng), _text(rng)], [5, 6, 7], [[5, 6], [7]], "", [], [""], None, 5, [5, "a"], {"a": 1}, [[]], [None],
        "long " * 400, [5] * 256, [5] * 300, [-1],
    ))  # fmt: skip
    return _post("/v1/completions", _completion(rng) | {"prompt": prompt} | ({"n": 2} if rng.random() < 0.2 else {}))


def _choice_of_tools(rng: random.Random) -> Asked:
    tools: Any = rng.choice(([_tool(rng)], [_tool(rng), _tool(rng)], [], [{"type": "function"}], "x", [5]))
    name = rng.choice((*_TOOLS, "nothing"))
    choice: Any = rng.choice(("auto", "none", "required", "any", {"type": "function", "function": {"name": name}}, 5))
    more: dict[str, Any] = {"tools": tools, "max_tokens": 24} | ({"tool_choice": choice} if rng.random() < 0.7 else {})
    return _post("/v1/chat/completions", _chat(rng) | more | ({"stream": True} if rng.random() < 0.3 else {}))


def _form(rng: random.Random) -> Asked:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    more = _choose(rng,
        {"response_format": {"type": "json_object"}}, {"response_format": {"type": "text"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}},
        {"response_format": {"type": "json_schema"}}, {"response_format": {"type": "riddle"}},
        {"response_format": "json"}, {"structured_outputs": {"choice": ["yes", "no"]}},
        {"structured_outputs": {"choice": []}}, {"structured_outputs": {"regex": "[ab]+", "choice": ["a"]}},
        {"structured_outputs": {}}, {"structured_outputs": {"json": schema}})  # fmt: skip
    return _post("/v1/chat/completions", _chat(rng) | more | {"max_tokens": 16})


def _roles(rng: random.Random) -> Asked:
    messages: Any = rng.choice((
        [{"role": "robot", "content": "a"}], [{"role": "user"}], [{"content": "a"}], [], "a", {"role": "user"}, [5],
        [{"role": "user", "content": None}], [{"role": "assistant", "content": "a"}],
        [{"role": "tool", "content": "a"}],
        [{"role": "developer", "content": "a"}, {"role": "user", "content": "b"}], [None], [[]],
        [{"role": "user", "content": "a", "name": "x"}], [{"role": "user", "content": 5}],
        [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
        [{"role": "assistant", "content": "a", "reasoning_content": "b"}, {"role": "user", "content": "c"}],
        [{"role": "user", "content": "long " * 400}],
    ))  # fmt: skip
    more = _choose(rng, {}, {}, {"add_generation_prompt": False}, {"continue_final_message": True}, {"echo": True},
                       {"add_generation_prompt": False, "continue_final_message": True}, {"stream": True})  # fmt: skip
    return _post("/v1/chat/completions", _chat(rng) | {"messages": messages} | more)


def _models(rng: random.Random) -> Asked:
    path, make = rng.choice((("/v1/chat/completions", _chat), ("/v1/completions", _completion)))
    name = rng.choice(("gpt-4", "", None, 5, "tiny-gemma4 ", "TINY-GEMMA4", ["tiny-gemma4"]))
    body = make(rng) | {"model": name}
    if rng.random() < 0.2:
        body.pop("model")
    return _post(path, body | _stream(rng) if rng.random() < 0.3 else body)


KINDS: dict[str, Callable[[random.Random], Asked]] = {
    "chat": lambda rng: _post("/v1/chat/completions", _chat(rng) | _sampling(rng)),
    "chat stream": lambda rng: _post("/v1/chat/completions", _chat(rng) | _stream(rng)),
    "completion": lambda rng: _post("/v1/completions", _completion(rng) | _sampling(rng)),
    "completion stream": lambda rng: _post("/v1/completions", _completion(rng) | _stream(rng)),
    "wrong value": lambda rng: _post("/v1/chat/completions", _chat(rng) | _wrong_value(rng)),
    "wrong values": lambda rng: _post("/v1/completions", _completion(rng) | _wrong_value(rng) | _wrong_value(rng)),
    "tool history": lambda rng: _post("/v1/chat/completions", _chat(rng) | {"messages": _tool_history(rng)}),
    "choice of tools": _choice_of_tools,
    "parts": lambda rng: _post(
        "/v1/chat/completions", _chat(rng) | {"messages": [{"role": "user", "content": _parts(rng)}]}
    ),
    "deep JSON": _deep,
    "broken body": _broken_body,
    "route": _route,
    "routes": _route,
    "batch": _batch,
    "systemone": _systemone,
    "decision": _decision,
    "response": _response,
    "message": _message,
    "tokens": _tokens,
    "beams": _beams,
    "header": _headers,
    "logprobs": _logprobs,
    "prompt": _prompt,
    "form": _form,
    "roles": _roles,
    "model": _models,
    "choices": lambda rng: _post("/v1/chat/completions", _chat(rng) | {"n": rng.randint(2, 3)} | _stream(rng)),
}
