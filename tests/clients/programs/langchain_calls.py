"""Calls of langchain-openai, of the service that the variables of `openai_python` name; argument: its model."""

import asyncio
import sys
from importlib.metadata import version

import openai
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI
from outcomes import Calls
from pydantic import BaseModel

MODEL = sys.argv[1]
calls = Calls(f"langchain-openai {version('langchain-openai')}")
chat = ChatOpenAI(model=MODEL, max_tokens=400, max_retries=0, timeout=60)
short = ChatOpenAI(model=MODEL, max_tokens=8, max_retries=0, timeout=60)


class Colour(BaseModel):
    """A colour."""

    name: str
    red: int


@tool
def weather(town: str) -> str:
    """The weather of a town."""
    return f"Rain in {town}."


def invoke() -> None:
    answer = short.invoke("Name a colour.")
    assert answer.content
    assert answer.usage_metadata["output_tokens"] == 8


def stream() -> None:
    assert "".join(chunk.text for chunk in short.stream("Name a colour."))


def batch() -> None:
    assert len(short.batch(["Name a colour.", "Name a town."])) == 2


def ainvoke() -> None:
    assert asyncio.run(short.ainvoke("Name a colour.")).content


def with_structured_output_by_schema() -> None:
    assert isinstance(chat.with_structured_output(Colour, method="json_schema").invoke("Name a colour."), Colour)


def with_structured_output_by_function() -> None:
    assert isinstance(chat.with_structured_output(Colour, method="function_calling").invoke("Name a colour."), Colour)


def bind_tools() -> None:
    answer = chat.bind_tools([weather], tool_choice="weather").invoke("The weather?")
    assert answer.tool_calls[0]["name"] == "weather"


def invoke_by_responses() -> None:
    model = ChatOpenAI(model=MODEL, use_responses_api=True, max_tokens=8, max_retries=0)
    assert model.invoke("Name a colour.").text


def completions_invoke() -> None:
    assert OpenAI(model=MODEL, max_tokens=8, max_retries=0).invoke("Once")


for call in (
    invoke, stream, batch, ainvoke, with_structured_output_by_schema, with_structured_output_by_function, bind_tools,
    invoke_by_responses, completions_invoke,
):  # fmt: skip
    calls.passes(call.__name__.replace("_", " "), call)
other = ChatOpenAI(model="gpt-5", max_retries=0)
calls.raises("unknown model", openai.NotFoundError, lambda: other.invoke("Name a colour."))
