"""Tokens of streams and answers by interface: as the server reports them, up to the last event that came."""

import json

import pytest

from bezel_door.calls.event_stream import EventStream
from bezel_door.calls.request_document import DocumentError, read_request
from bezel_door.calls.routes import Api
from bezel_door.calls.token_use import StreamUse, Tokens, estimated_tokens, stalled_tokens, tokens_of_answer


def pass_on(api, asked, events, piece=None):
    """What the caller gets of a stream's events, and the tokens at their end."""
    document = read_request(json.dumps(asked).encode(), api)
    use = StreamUse(api, document)
    stream = EventStream(api, document, use)
    data = "".join(events).encode()
    size = piece or len(data) or 1
    passed = b"".join(stream.take(data[at : at + size]) for at in range(0, len(data), size)) + stream.rest()
    return passed.decode(), use.now(), stream


def chunk(index, completion=None, prompt=7, text="x"):
    usage = "" if completion is None else f',"usage":{{"prompt_tokens":{prompt},"completion_tokens":{completion}}}'
    choice = json.dumps({"index": index, "delta": {"content": text}}, separators=(",", ":"))
    return f'data: {{"id":"c","choices":[{choice}]{usage},"kv":null}}\n\n'


def event_of(kind, **content):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **content})}\n\n"


END = 'data: {"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}\n\n'
DONE = "data: [DONE]\n\n"
MESSAGE = [
    event_of("message_start", message={"content": [], "usage": {"input_tokens": 13, "output_tokens": 0}}),
    event_of("content_block_delta", delta={"text": "a"}),
    event_of("content_block_delta", delta={"text": "b"}),
    event_of("message_delta", delta={}, usage={"input_tokens": 13, "output_tokens": 4}),
    event_of("message_stop"),
]
RESPONSE = [
    event_of("response.created", response={"usage": None, "error": None}),
    event_of("response.output_text.delta", delta="a"),
    event_of("response.incomplete", response={"usage": {"input_tokens": 5, "output_tokens": 6}}),
]


@pytest.mark.parametrize("piece", [1, 7, 40, None])
def test_events_pass_whole_and_without_what_was_not_asked_for(piece):
    events = [chunk(0, 1), chunk(0, 2, text='say "usage":{"a":1} \\'), chunk(0, 3), END, DONE]
    passed, tokens, stream = pass_on(Api.CHAT, {"stream": True}, events, piece)
    assert passed == chunk(0) + chunk(0, text='say "usage":{"a":1} \\') + chunk(0) + DONE
    assert (tokens, stream.is_done, stream.has_error) == (Tokens(7, 9), True, False)


def test_an_event_with_a_second_usage_is_written_again_without_its_own():
    event = (
        'data: {"a":{"b":1,"usage":{}},"choices":[{"index":0}],"usage":{"completion_tokens":1,"prompt_tokens":2}}\n\n'
    )
    passed, tokens, _ = pass_on(Api.CHAT, {"stream": True}, [event])
    assert passed == 'data: {"a":{"b":1,"usage":{}},"choices":[{"index":0}]}\n\n'
    assert tokens == Tokens(2, 1)


@pytest.mark.parametrize(
    ("api", "asked", "events", "expected"),
    [
        (Api.CHAT, {"n": 2}, [chunk(0, 3), chunk(1, 5), chunk(0, 4)], Tokens(7, 9)),
        (Api.COMPLETIONS, {"prompt": ["a", "b"]}, [chunk(0, 3), chunk(1, 5, 9)], Tokens(16, 8)),
        (Api.COMPLETIONS, {"prompt": ["a", "b"], "n": 2}, [chunk(0, 3), chunk(1, 5)], Tokens(7, 8, is_estimate=True)),
        (Api.CHAT, {"messages": [{"content": "x" * 40}]}, [], Tokens(10, 0, is_estimate=True)),
        (Api.CHAT, {}, [chunk(0), chunk(0)], Tokens(0, 2, is_estimate=True)),
        (Api.MESSAGES, {}, MESSAGE, Tokens(13, 4)),
        (Api.MESSAGES, {}, MESSAGE[:3], Tokens(13, 2, is_estimate=True)),
        (Api.RESPONSES, {}, RESPONSE, Tokens(5, 6)),
        (Api.RESPONSES, {"input": "x" * 8}, RESPONSE[:2], Tokens(2, 1, is_estimate=True)),
    ],
)
def test_a_stream_is_counted_to_its_last_event(api, asked, events, expected):
    passed, tokens, stream = pass_on(api, {"stream": True, **asked}, events)
    assert (tokens, stream.has_error) == (expected, False)
    assert api in (Api.CHAT, Api.COMPLETIONS) or passed == "".join(events)


@pytest.mark.parametrize("event", ['data: {"error":{"message":"no"}}\n\n', event_of("error", error={})])
def test_an_error_in_a_stream_is_a_failure(event):
    assert pass_on(Api.CHAT, {"stream": True}, [event])[2].has_error


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"usage": {"prompt_tokens": 3, "total_tokens": 3}}, Tokens(3, 0)),
        ({"usage": {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 10}}, Tokens(13, 2)),
        ({"usage": {"prompt_tokens": -1, "completion_tokens": True}}, None),
        ({"usage": None}, None),
        ({"meta": {"billed_units": {"input_tokens": 4}}}, Tokens(4, 0)),
        ([], None),
    ],
)
def test_tokens_of_a_whole_answer(content, expected):
    assert tokens_of_answer(json.dumps(content).encode()) == expected


@pytest.mark.parametrize(
    ("api", "asked", "prompt", "reserved"),
    [
        (Api.CHAT, {"messages": [{"role": "user", "content": "x" * 400}]}, 101, 101 + 512),
        (Api.CHAT, {"messages": [], "max_tokens": 10, "n": 3}, 0, 30),
        (Api.CHAT, {"messages": [], "max_completion_tokens": 10}, 0, 10),
        (Api.COMPLETIONS, {"prompt": ["a" * 8, "b" * 8], "max_tokens": 5}, 4, 14),
        (Api.COMPLETIONS, {"prompt": [1, 2, 3]}, 3, 3 + 512),
        (Api.COMPLETIONS, {"prompt": "", "max_completion_tokens": 1, "max_tokens": 900}, 0, 900),
        (Api.MESSAGES, {"messages": [], "max_output_tokens": 1}, 0, 512),
        (Api.RESPONSES, {"input": "x" * 8, "max_output_tokens": 7}, 2, 9),
        (Api.WHOLE, {"input": "x" * 8}, 2, 2),
        (Api.CHAT, {"messages": [{"content": [{"image_url": {"url": "data:" + "x" * 9999}}]}]}, 256, 256 + 512),
        (Api.CHAT, {"messages": [{"content": "data:" + "x" * 3995}]}, 1000, 1000 + 512),
        (Api.CHAT, {"tools": [{"image_url": "x" * 4000}]}, 1000, 1000 + 512),
        (Api.CHAT, {"messages": [{"content": "\u4e2d" * 400}]}, 300, 300 + 512),
        (Api.CHAT, {"max_tokens": "1_0", "n": 3.0}, 0, 30),
        (Api.CHAT, {"max_tokens": 10, "n": 16_000}, 0, 160_000),
        (Api.CHAT, {"max_tokens": 10, "n": "nan"}, 0, 10),
        (Api.CHAT, {"max_tokens": 10.5, "n": [2]}, 0, 512),
    ],
)
def test_a_reservation_is_the_text_and_the_stated_maximum(api, asked, prompt, reserved):
    document = read_request(json.dumps(asked).encode(), api)
    assert (document.prompt_tokens, document.reserved_tokens) == (prompt, reserved)


def test_an_answer_without_a_waiting_caller_is_estimated_by_its_time():
    asked = read_request(b'{"max_tokens":100,"n":2,"messages":[]}', Api.CHAT)
    assert estimated_tokens(asked, 1.0) == Tokens(0, 60, is_estimate=True)
    assert estimated_tokens(read_request(b'{"input":"12345678"}', Api.WHOLE), 1.0) == Tokens(2, 0, is_estimate=True)
    assert estimated_tokens(asked, 1000.0) == Tokens(0, 200, is_estimate=True)


def test_a_stream_that_its_caller_did_not_read_is_estimated_by_its_time():
    asked = read_request(b'{"max_tokens":100,"n":2,"messages":[],"stream":true}', Api.CHAT)
    assert stalled_tokens(Tokens(7, 10), asked, 1.0) == Tokens(7, 60, is_estimate=True)
    assert stalled_tokens(Tokens(7, 90), asked, 1.0) == Tokens(7, 90, is_estimate=True)


def test_the_document_keeps_what_the_door_does_not_judge():
    content = '{"model":"a","x":{"y":[1.5,"\\ud83d\\ude00",null]},"stream":true,"stream_options":"wrong"}'
    document = read_request(content.encode(), Api.CHAT)
    assert json.loads(document.body) == json.loads(content)
    with pytest.raises(DocumentError, match="not JSON"):
        read_request(b'{"model":', Api.CHAT)


@pytest.mark.parametrize(
    "content",
    [
        b'{"a":"' + b"," * 1_000_001 + b'\\"' * 500_000,
        b'{"a":"' + b"," * 1_000_001 + b'\\"' * 500_000 + b"\\",
        b'{"a":[' + b",".join([b"1" * 4000] * 3000) + b"]}",
        '{"model":"gemma"}'.encode("utf-16"),
        b'\xef\xbb\xbf{"model":"gemma"}',
        b'{"model":"\xed\xa0\x80"}',
    ],
    ids=["an open string", "an open escape", "long numbers", "UTF-16", "a byte order mark", "a surrogate in bytes"],
)
def test_a_body_that_would_hold_the_door_or_hide_values_is_refused(content):
    """Reading one of the first three costs the square of its size: minutes."""
    with pytest.raises(DocumentError, match="not JSON"):
        read_request(content, Api.CHAT)
