"""Documents and heads that two programs could read in two ways: each is refused, or the server gets what was judged."""

import asyncio
import json

import pytest

from door_support.running import CHAT, MADE, running_door

IDENTITY = "eyJhbGciOiJSUzI1NiJ9.e30.sig"
ASKED = {"model": "gemma", "messages": []}
MODELS = {
    name: {**ASKED, "model": model}
    for name, model in {
        "capitals": "Gemma",
        "a space before": " gemma",
        "a space behind": "gemma ",
        "a NUL": "gemma\0",
        "a line": "gemma\n",
        "a letter of another script": "g\u0435mma",
        "wide letters": "\uff47\uff45\uff4d\uff4d\uff41",
        "a joiner": "gemma\u200d",
        "a surrogate": "gemma\ud800",
        "a path": "./gemma",
        "an adapter": "gemma-lora",
        "a base and an adapter": "gemma:lora",
        "a list": ["gemma"],
        "an object": {"gemma": 1},
        "true": True,
        "a number": 0,
        "null": None,
        "nothing": "",
    }.items()
} | {"no model": {"messages": []}, "another name": {"Model": "gemma"}, "a name within": {"x": {"model": "gemma"}}}
RESTRICTED_PATHS = ("/v1/completions", "/v1/messages", "/v1/responses", "/v1/embeddings", "/tokenize", "/pooling")
BODIES = {
    "a comment": b'{"model":"gemma"/**/}',
    "a comma too many": b'{"model":"gemma",}',
    "single quotes": b"{'model':'gemma'}",
    "two documents": b'{"model":"gemma"}{"model":"other"}',
    "a NUL behind": b'{"model":"gemma"}\0',
    "a form feed": b'\x0c{"model":"gemma"}',
    "an overlong slash": b'{"model":"\xc0\xaf"}',
    "a control in a text": b'{"model":"ge\x01mma"}',
    "a short escape": b'{"model":"\\u00"}',
    "a leading zero": b'{"model":"gemma","n":01}',
    "hexadecimal": b'{"model":"gemma","n":0x1}',
    "gzip": b"\x1f\x8b\x08\x00",
    "UTF-32": '{"model":"gemma"}'.encode("utf-32"),
    "UTF-16 without a mark": '{"model":"gemma"}'.encode("utf-16-be"),
    "an empty list for stream": b'{"model":"gemma","stream":[]}',
    "1.0 for stream": b'{"model":"gemma","stream":1.0}',
}
HEADERS = {
    "a scheme in small letters": (["authorization: bearer KEY"], 200),
    "two spaces": (["Authorization: Bearer  KEY"], 200),
    "the same key twice": (["Authorization: Bearer KEY", "api-key: KEY"], 200),
    "a tab": (["Authorization: Bearer\tKEY"], 401),
    "a scheme in the plain header": (["x-api-key: Bearer KEY"], 401),
    "quotes": (['Authorization: Bearer "KEY"'], 401),
    "a comma": (["Authorization: Bearer KEY,"], 401),
    "a no-break space": (["Authorization: Bearer KEY\xa0"], 401),
    "two keys in the plain header": (["x-api-key: KEY,KEY"], 401),
    "base64": (["Authorization: Basic YmV6ZWw6S0VZ"], 401),
    "an identity beside it": ([f"Authorization: Bearer {IDENTITY}", "x-api-key: KEY"], 400),
    "forwarded alone": (["X-Forwarded-Authorization: Bearer KEY"], 401),
    "goog alone": (["X-Goog-Api-Key: KEY"], 401),
    "a protocol of web sockets": (["Sec-WebSocket-Protocol: openai-insecure-api-key.KEY"], 401),
    "another path": (["x-api-key: KEY", "X-Original-URL: /metrics", "X-Rewrite-URL: /metrics"], 200),
    "another method": (["x-api-key: KEY", "X-HTTP-Method-Override: DELETE"], 200),
    "its own header for the next hop alone": (["x-api-key: KEY", "Connection: x-api-key, content-length"], 200),
    "another protocol": (["x-api-key: KEY", "Connection: Upgrade", "Upgrade: h2c", "HTTP2-Settings: AAM"], 200),
    "an identity for the server": (["x-api-key: KEY", f"X-Serverless-Authorization: Bearer {IDENTITY}"], 200),
    "headers of Google's front end": (["x-api-key: KEY", "X-Goog-Authenticated-User-Email: a@b", "Via: x"], 200),
    "a charset that is none": (["x-api-key: KEY", "Content-Type: application/json; charset=utf-16"], 200),
}
OPTIONS = (None, {}, {"include_usage": False}, {"include_usage": None}, {"include_usage": "no"},
           {"continuous_usage_stats": False}, {"include_usage": 0, "continuous_usage_stats": 0, "more": 1})  # fmt: skip
FORWARDED = {"host", "accept-encoding", "content-type", "content-length", "x-serverless-authorization"}


async def answer(received):
    await received.answer(200, {"usage": {"prompt_tokens": 2, "completion_tokens": 1}})


def run(steps, **limits):
    async def inside():
        async with running_door(answer, **limits) as door:
            return await asyncio.wait_for(steps(door), 60)

    return asyncio.run(inside())


async def status(door, body, lines=(), path=CHAT):
    content_type = [] if any("Content-Type" in line for line in lines) else ["Content-Type: application/json"]
    head = [f"POST {path} HTTP/1.1", "Host: x", "Connection: close", *content_type, *lines]
    head = [line for line in head if line != "Connection: close" or not any("Connection: " in each for each in lines)]
    data = "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode("latin-1") + body
    reader, writer = await door.connect()
    writer.write(data)
    line = await asyncio.wait_for(reader.readline(), 60)
    writer.close()
    return int(line.split()[1])


def test_a_key_for_one_model_asks_for_no_other_in_any_spelling():
    async def steps(door):
        key = [f"x-api-key: {door.key}"]
        bodies = {name: json.dumps(asked).encode() for name, asked in MODELS.items()}
        statuses = {name: await status(door, body, key) for name, body in bodies.items()}
        other = json.dumps({"model": "other", "input": "x", "prompt": "x"}).encode()
        statuses |= {path: await status(door, other, key, path) for path in RESTRICTED_PATHS}
        right = await status(door, b'{"model":"other","model":"gemma","messages":[]}', key)
        return statuses, right, [received.document()["model"] for received in door.received], await door.usage()

    statuses, right, models, usage = run(steps, models=("gemma",))
    assert set(statuses.values()) == {403}
    assert (right, models) == (200, ["gemma"])
    assert (usage.requests, usage.refused, usage.prompt_tokens) == (1, len(statuses), 2)


def test_bodies_that_are_no_plain_json_are_refused():
    async def steps(door):
        key = [f"x-api-key: {door.key}"]
        return {name: await status(door, body, key) for name, body in BODIES.items()}, len(door.received)

    statuses, received = run(steps)
    assert {name: each for name, each in statuses.items() if each != 400} == {}
    assert received == 0


def test_headers_in_any_form_bring_no_identity_and_no_key_to_the_server():
    async def steps(door):
        body = json.dumps(ASKED).encode()
        statuses = {
            name: await status(door, body, [line.replace("KEY", door.key) for line in lines])
            for name, (lines, _) in HEADERS.items()
        }
        heads = [received.headers for received in door.received]
        return statuses, heads, [received.line for received in door.received], json.dumps(door.lines), door.key

    statuses, heads, lines, log, key = run(steps)
    assert statuses == {name: expected for name, (_, expected) in HEADERS.items()}
    assert set(lines) == {f"POST {CHAT} HTTP/1.1"}
    assert all(set(head) <= FORWARDED for head in heads)
    assert {head["content-type"] for head in heads} == {"application/json"}
    assert all(secret not in json.dumps(heads) + log for secret in (key, key[15:], IDENTITY))


@pytest.mark.parametrize("options", OPTIONS)
def test_no_options_of_a_stream_turn_the_counting_off(options):
    async def stream(received):
        asked = received.document()["stream_options"]
        await received.begin_stream()
        if asked["include_usage"] is True and asked["continuous_usage_stats"] is True:
            usage = {"prompt_tokens": 3, "completion_tokens": 5}
            await received.event({"choices": [{"index": 0, "delta": {"content": "x"}}], "usage": usage})
        await received.end_stream()

    async def inside():
        async with running_door(stream) as door:
            asked = {**ASKED, "stream": True, "stream_options": options}
            passed = (await door.ask(document=asked)).body
            return passed, await door.usage()

    passed, usage = asyncio.run(inside())
    assert (usage.prompt_tokens, usage.completion_tokens, usage.estimated_requests) == (3, 5, 0)
    assert b'"content":"x"' in passed


@pytest.mark.parametrize(
    ("ended", "code"), [("expires", "expired_api_key"), ("revoked", "revoked_api_key"), ("", "invalid_api_key")]
)
def test_a_key_that_is_refused_has_the_words_that_clients_look_for(ended, code):
    async def steps(door):
        refused = door.add_key(**({ended: MADE} if ended else {}))
        if not ended:
            refused = refused[:-1] + ("A" if refused[-1] != "A" else "E")
        return await door.ask(key=refused)

    refusal = run(steps)
    assert (refusal.status, refusal.code) == (401, code)
    assert refusal.document()["error"]["message"].startswith("Incorrect API key provided.")
