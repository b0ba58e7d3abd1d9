"""Calls of the openai package: `OPENAI_BASE_URL` and `OPENAI_API_KEY` point it to a service; argument: its model."""

import asyncio
import sys

import openai
from outcomes import Calls
from pydantic import BaseModel

MODEL = sys.argv[1]
MESSAGES = [{"role": "user", "content": "Name a colour."}]
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a town.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}
TOOLS = {"tools": [TOOL], "tool_choice": "required", "max_tokens": 400}

client = openai.OpenAI(max_retries=0, timeout=60)
chats = client.chat.completions
calls = Calls(f"openai (Python) {openai.__version__}")


class Colour(BaseModel):
    """A structured answer."""

    name: str
    red: int


def models_list() -> None:
    assert [model.id for model in client.models.list()] == [MODEL]


def completions_create() -> None:
    answer = client.completions.create(model=MODEL, prompt="Once", max_tokens=8)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 8


def completions_create_of_several_prompts() -> None:
    answer = client.completions.create(model=MODEL, prompt=["Once", "Twice"], max_tokens=4, n=2, logprobs=2, echo=True)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert answer.choices[0].text.startswith("Once")
    assert len(answer.choices[0].logprobs.tokens) == len(answer.choices[0].logprobs.token_logprobs)


def completions_stream() -> None:
    chunks = list(client.completions.create(model=MODEL, prompt="Once", max_tokens=8, stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "length"


def chat_create() -> None:
    answer = chats.create(model=MODEL, messages=MESSAGES, max_completion_tokens=8)
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 8


def chat_create_with_parts_and_sampling() -> None:
    parts = [{"type": "text", "text": "Name"}, {"type": "text", "text": "a colour."}]
    messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": parts}]
    answer = chats.create(
        model=MODEL, messages=messages, max_tokens=4, n=2, seed=1, stop=["zzzz"], temperature=0.5, top_p=0.9,
        presence_penalty=0.1, frequency_penalty=0.1, logit_bias={"5": -1}, user="someone",
    )  # fmt: skip
    assert len(answer.choices) == 2


def chat_create_with_logprobs() -> None:
    answer = chats.create(model=MODEL, messages=MESSAGES, max_tokens=4, logprobs=True, top_logprobs=2)
    assert len(answer.choices[0].logprobs.content) == 4
    assert len(answer.choices[0].logprobs.content[0].top_logprobs) == 2


def chat_stream_with_usage() -> None:
    usage = {"include_usage": True}
    chunks = list(chats.create(model=MODEL, messages=MESSAGES, max_tokens=8, stream=True, stream_options=usage))
    assert chunks[-1].usage.completion_tokens == 8
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def chat_stream_closed_early() -> None:
    with chats.create(model=MODEL, messages=MESSAGES, max_tokens=512, stream=True) as stream:
        next(iter(stream))
    chat_create()


def chat_stream_by_events() -> None:
    with chats.stream(model=MODEL, messages=MESSAGES) as stream:
        events = [event.type for event in stream]
        answer = stream.get_final_completion()
    assert "content.delta" in events
    assert answer.choices[0].message.content


def chat_parse() -> None:
    answer = chats.parse(model=MODEL, messages=MESSAGES, max_tokens=400, response_format=Colour)
    assert isinstance(answer.choices[0].message.parsed, Colour)


def chat_create_json() -> None:
    form = {"type": "json_object"}
    answer = chats.create(model=MODEL, messages=MESSAGES, max_tokens=400, response_format=form)
    assert answer.choices[0].message.content.lstrip().startswith("{")


def chat_create_with_tools() -> None:
    call = chats.create(model=MODEL, messages=MESSAGES, **TOOLS).choices[0].message.tool_calls[0]
    assert call.function.name == "weather"
    messages = [
        *MESSAGES,
        {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]},
        {"role": "tool", "tool_call_id": call.id, "content": "Rain."},
    ]
    assert chats.create(model=MODEL, messages=messages, max_tokens=4, tools=[TOOL]).choices


def chat_stream_with_tools() -> None:
    stream = chats.create(model=MODEL, messages=MESSAGES, stream=True, **TOOLS)
    parts = [call for chunk in stream for choice in chunk.choices for call in choice.delta.tool_calls or []]
    assert parts[0].function.name == "weather"
    assert "".join(part.function.arguments or "" for part in parts).startswith("{")


def responses_create() -> None:
    answer = client.responses.create(model=MODEL, input="Name a colour.", max_output_tokens=8)
    assert answer.output_text
    assert answer.usage.output_tokens == 8


def responses_create_of_parts() -> None:
    message = {"role": "user", "content": [{"type": "input_text", "text": "Name a colour."}]}
    answer = client.responses.create(model=MODEL, input=[message], instructions="Be short.", max_output_tokens=8)
    assert answer.output_text


def responses_stream() -> None:
    stream = client.responses.create(model=MODEL, input="Name a colour.", max_output_tokens=8, stream=True)
    types = [event.type for event in stream]
    assert types[0] == "response.created"
    assert "response.output_text.delta" in types
    assert types[-1] in {"response.completed", "response.incomplete"}


def responses_parse() -> None:
    answer = client.responses.parse(model=MODEL, input="Name a colour.", max_output_tokens=400, text_format=Colour)
    assert isinstance(answer.output_parsed, Colour)


def with_raw_response() -> None:
    raw = chats.with_raw_response.create(model=MODEL, messages=MESSAGES, max_tokens=4)
    assert raw.http_response.status_code == 200
    assert raw.parse().choices


def eight_at_once() -> None:
    async def several() -> list[object]:
        async with openai.AsyncOpenAI(max_retries=0, timeout=60) as async_client:
            create = async_client.chat.completions.create
            return await asyncio.gather(*(create(model=MODEL, messages=MESSAGES, max_tokens=4) for _ in range(8)))

    assert len(asyncio.run(several())) == 8


def vllm_parameters_in_extra_body() -> None:
    more = {"ignore_eos": True, "min_tokens": 6, "top_k": 5}
    assert chats.create(model=MODEL, messages=MESSAGES, max_tokens=6, extra_body=more).usage.completion_tokens == 6


for call in (
    models_list, completions_create, completions_create_of_several_prompts, completions_stream,
    chat_create, chat_create_with_parts_and_sampling, chat_create_with_logprobs, chat_stream_with_usage,
    chat_stream_closed_early, chat_stream_by_events, chat_parse, chat_create_json, chat_create_with_tools,
    chat_stream_with_tools, responses_create, responses_create_of_parts, responses_stream, responses_parse,
    with_raw_response, eight_at_once, vllm_parameters_in_extra_body,
):  # fmt: skip
    calls.passes(call.__name__.replace("_", " "), call)

calls.lacks(
    "models retrieve", openai.NotFoundError, lambda: client.models.retrieve(MODEL), "vLLM 0.32.0 lists models only"
)
calls.raises("unknown model", openai.NotFoundError, lambda: chats.create(model="gpt-5", messages=MESSAGES))
calls.raises(
    "negative limit", openai.BadRequestError, lambda: chats.create(model=MODEL, messages=MESSAGES, max_tokens=-1)
)
long = [{"role": "user", "content": "word " * 40_000}]
calls.raises("prompt that is too long", openai.BadRequestError, lambda: chats.create(model=MODEL, messages=long))
stranger = openai.OpenAI(api_key="sk-wrong", max_retries=0)
calls.raises("wrong key", openai.AuthenticationError, stranger.models.list)
calls.raises(
    "embeddings of a model that generates",
    openai.NotFoundError,
    lambda: client.embeddings.create(model=MODEL, input="a"),
)
