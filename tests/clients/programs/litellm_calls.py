"""Calls of litellm through its providers `openai` and `hosted_vllm`.

`OPENAI_BASE_URL` and `OPENAI_API_KEY` name the service; argument: its model.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from importlib.metadata import version

import litellm
from outcomes import Calls

MODEL = sys.argv[1]
MESSAGES = [{"role": "user", "content": "Name a colour."}]
SERVER = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"], "num_retries": 0}
PARAMETERS = {"type": "object", "properties": {"town": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}
litellm.suppress_debug_info = True  # else it prints between the outcomes
calls = Calls(f"litellm {version('litellm')}")


def completion(provider: str) -> None:
    answer = litellm.completion(f"{provider}/{MODEL}", MESSAGES, max_tokens=8, **SERVER)
    assert answer.choices[0].message.content
    assert answer.usage.completion_tokens == 8


def completion_stream(provider: str) -> None:
    chunks = litellm.completion(f"{provider}/{MODEL}", MESSAGES, max_tokens=8, stream=True, **SERVER)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def completion_with_tools(provider: str) -> None:
    forced = {"tools": [TOOL], "tool_choice": "required"}
    answer = litellm.completion(f"{provider}/{MODEL}", MESSAGES, max_tokens=400, **forced, **SERVER)
    assert answer.choices[0].message.tool_calls[0].function.name == "weather"


def text_completion(provider: str) -> None:
    kind = "text-completion-openai" if provider == "openai" else provider
    assert litellm.text_completion(prompt="Once", model=f"{kind}/{MODEL}", max_tokens=8, **SERVER).choices[0].text


def four_acompletions(provider: str) -> None:
    async def several() -> list[object]:
        each = (litellm.acompletion(f"{provider}/{MODEL}", MESSAGES, max_tokens=4, **SERVER) for _ in range(4))
        return await asyncio.gather(*each)

    assert len(asyncio.run(several())) == 4


def responses(provider: str) -> None:
    assert litellm.responses("Name a colour.", f"{provider}/{MODEL}", max_output_tokens=8, **SERVER).output


def by(provider: str, call: Callable[[str], None]) -> None:
    name = call.__name__.replace("_", " ")
    calls.passes(f"{name} ({provider})", lambda: call(provider))


for called in (completion, completion_stream, completion_with_tools, text_completion, four_acompletions, responses):
    by("openai", called)
    by("hosted_vllm", called)
calls.raises(
    "unknown model",
    litellm.NotFoundError,
    lambda: litellm.completion("hosted_vllm/gpt-5", MESSAGES, max_tokens=1, **SERVER),
)
calls.raises(
    "wrong key",
    litellm.AuthenticationError,
    lambda: litellm.completion(f"openai/{MODEL}", MESSAGES, max_tokens=1, **SERVER | {"api_key": "sk-wrong"}),
)
