"""Calls of the anthropic package: `ANTHROPIC_BASE_URL`, `ANTHROPIC_API_KEY` point it to a door; argument: its model."""

import sys

import anthropic
from outcomes import Calls

MODEL = sys.argv[1]
MESSAGES = [{"role": "user", "content": "Name a colour."}]
TOOL = {
    "name": "weather",
    "description": "The weather of a town.",
    "input_schema": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
}

client = anthropic.Anthropic(max_retries=0, timeout=60)
messages = client.messages
calls = Calls(f"anthropic (Python) {anthropic.__version__}")


def messages_create() -> None:
    answer = messages.create(model=MODEL, messages=MESSAGES, max_tokens=8)
    assert answer.content[0].text
    assert answer.usage.output_tokens == 8


def messages_stream() -> None:
    with messages.stream(model=MODEL, messages=MESSAGES, max_tokens=8) as stream:
        text = "".join(stream.text_stream)
        answer = stream.get_final_message()
    assert text == answer.content[0].text
    assert answer.usage.output_tokens == 8


def messages_stream_closed_early() -> None:
    with messages.stream(model=MODEL, messages=MESSAGES, max_tokens=512) as stream:
        next(iter(stream.text_stream))
    messages_create()


def messages_with_tools() -> None:
    answer = messages.create(
        model=MODEL, messages=MESSAGES, max_tokens=400, tools=[TOOL], tool_choice={"type": "tool", "name": "weather"}
    )
    assert any(block.type == "tool_use" and block.name == "weather" for block in answer.content)


def count_tokens() -> None:
    assert messages.count_tokens(model=MODEL, messages=MESSAGES).input_tokens > 0


def as_bearer() -> None:
    other = anthropic.Anthropic(auth_token=client.api_key, api_key=None, max_retries=0)
    assert other.messages.create(model=MODEL, messages=MESSAGES, max_tokens=2).content


def wrong_key() -> None:
    anthropic.Anthropic(api_key="sk-wrong", max_retries=0).messages.create(model=MODEL, messages=MESSAGES, max_tokens=2)


for call in (
    messages_create,
    messages_stream,
    messages_stream_closed_early,
    messages_with_tools,
    count_tokens,
    as_bearer,
):
    calls.passes(call.__name__.replace("_", " "), call)
calls.raises("wrong key", anthropic.AuthenticationError, wrong_key)
