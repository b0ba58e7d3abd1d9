"""The response object of the Responses API and its items, before and after the text."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api.errors import TEMPLATES
from bezel_simulated_vllm.api.structured import tool_call_id
from bezel_simulated_vllm.release import has_change
from bezel_simulated_vllm.scheduling.detokenize import chat_logprobs
from bezel_simulated_vllm.scheduling.fake_text import THOUGHT
from bezel_simulated_vllm.scheduling.tokenizer import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel_simulated_vllm.api.generation import Call
    from bezel_simulated_vllm.scheduling.channel import Piece

_COPIED = (
    *("instructions", "metadata", "background", "user", "max_tool_calls", "service_tier"),
    *("truncation", "text", "reasoning", "tools", "tool_choice"),
)

# Keys that later releases have after another key: the client's options, which vLLM echoes.
_AFTER: dict[str, tuple[str, ...]] = {
    "prompt": ("prompt_cache_options", "prompt_cache_key", "prompt_cache_retention"),
    "reasoning": ("safety_identifier",),
}
_CACHE_OPTIONS = ("mode", "ttl", "comparison_response_id")


def plain(value: Any) -> Any:
    """Return a validated part of a body as JSON, with the defaults of its model."""
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    fields = getattr(value, "__dict__", None)
    if fields is None:
        return value
    # A field that is named like a word of Python has an underscore at its end there.
    return {key.rstrip("_"): plain(part) for key, part in {**fields, **(value.__pydantic_extra__ or {})}.items()}


class ResponseObject:
    """The response object of a call.

    Args:
        call: the call that the engine works on.
        body: what the recorded model made of the request.
        top: how many likely tokens are returned beside each token; None for no probabilities.
        tool: the function that the answer calls; None for a text.
    """

    def __init__(self, call: Call, body: Any, top: int | None, tool: dict[str, Any] | None = None) -> None:
        self.call = call
        self._body = body
        self.top = top
        self._id = body.request_id or f"resp_{secrets.token_hex(8)}"
        self.message_id = f"msg_{secrets.token_hex(8)}"
        self.thought_id = f"rs_{secrets.token_hex(8)}"
        self.tool, self.call_id = tool, f"fc_{secrets.token_hex(8)}"
        self._tool_call_id = tool_call_id()
        self._created = int(time.time())
        self._tells_cut = has_change("incomplete-responses")

    def whole(
        self, status: str, output: list[dict[str, Any]], usage: dict[str, Any] | None, incomplete: object = None
    ) -> dict[str, Any]:
        """Return the object with all its keys."""
        body, call = self._body, self.call
        copied = {name: plain(getattr(body, name)) for name in _COPIED}
        sampling = {
            name: default if getattr(body, name) is None else getattr(body, name)
            for name, default in (("temperature", 1.0), ("top_p", 1.0), ("presence_penalty", 0.0),
                                  ("frequency_penalty", 0.0), ("parallel_tool_calls", True))
        }  # fmt: skip
        raw = body.enable_response_messages and usage is not None
        return self._template() | {
            "id": self._id,
            "created_at": self._created,
            "incomplete_details": incomplete,
            "model": call.model,
            "output": output,
            "max_output_tokens": call.choices[0].request.max_tokens,
            "top_logprobs": self.top,
            "status": status,
            "usage": usage,
            **sampling,
            **copied,
            "input_messages": [_raw(call.choices[0].request.prompt)] if raw else None,
            "output_messages": [_raw(call.choices[0].tokens)] if raw else None,
        }

    def _template(self) -> dict[str, Any]:
        """Return the object's keys in their order, with the client's options of caching where the release has them."""
        template = TEMPLATES["response"]
        if not self._tells_cut:
            return template
        keys: dict[str, Any] = {}
        for key, value in template.items():
            keys[key] = value
            for name in _AFTER.get(key, ()):
                keys[name] = plain(getattr(self._body, name))
        options = keys["prompt_cache_options"]
        if options is not None:
            keys["prompt_cache_options"] = {name: options[name] for name in _CACHE_OPTIONS}
        return keys

    def whole_of(self, piece: Piece) -> dict[str, Any]:
        """Return the object of a completed answer."""
        choice = self.call.choices[0]
        thought = choice.thought[len(THOUGHT) :] if self._body.include_reasoning else ""
        output = [self.thought_item(thought)] if thought else []
        if choice.text and self.tool:
            output.append(self.function_call(choice.text))
        elif choice.text:
            output.append(self.message(choice.text, self.logprobs(0, choice.tokens), self.item_status(piece)))
        if piece.finish == "length":
            return self.whole("incomplete", output, self._usage(), {"reason": "max_output_tokens"})
        return self.whole("completed", output, self._usage())

    def logprobs(self, start: int, tokens: Sequence[int], *, brief: bool = False) -> list[dict[str, Any]] | None:
        """Return the probabilities of tokens from place `start` on; `brief` without their bytes, as in a delta."""
        if self.top is None:
            return None
        rows: Any = chat_logprobs(self.call.choices[0].request.key, start, tokens, self.top)["content"]
        return [_probability(row, brief=brief) for row in rows]

    def item_status(self, piece: Piece | None) -> str:
        """Return the status of an item that ends with a piece."""
        return "incomplete" if self._tells_cut and piece is not None and piece.finish == "length" else "completed"

    def message(
        self, text: str, logprobs: list[dict[str, Any]] | None = None, status: str = "completed"
    ) -> dict[str, Any]:
        """Return the item with the text."""
        part: dict[str, Any] = {"annotations": [], "text": text, "type": "output_text", "logprobs": logprobs}
        return TEMPLATES["response_message"] | {"id": self.message_id, "content": [part], "status": status}

    def function_call(self, arguments: str) -> dict[str, Any]:
        """Return the item with the call of the function."""
        named = {"name": (self.tool or {}).get("name", ""), "id": self.call_id, "call_id": self._tool_call_id}
        return TEMPLATES["response_call"] | {"arguments": arguments, **named}

    def thought_item(self, text: str) -> dict[str, Any]:
        """Return the item with the thoughts."""
        content = [{"text": text, "type": "reasoning_text"}]
        return TEMPLATES["response_thought"] | {"id": self.thought_id, "content": content}

    def _usage(self) -> dict[str, Any]:
        call, usage = self.call, TEMPLATES["response_usage"]
        cached = call.cached_tokens if call.engine.settings.prompt_tokens_details else 0
        return usage | {
            "input_tokens": call.prompt_tokens,
            "input_tokens_details": usage["input_tokens_details"] | {"cached_tokens": cached},
            "output_tokens": call.completion_tokens,
            "output_tokens_details": usage["output_tokens_details"] | {"reasoning_tokens": call.thought_tokens},
            "total_tokens": call.prompt_tokens + call.completion_tokens,
        }


def _raw(tokens: Sequence[int]) -> dict[str, Any]:
    return {"message": decode(tokens), "tokens": list(tokens), "type": "raw_message_tokens"}


def _probability(row: dict[str, Any], *, brief: bool) -> dict[str, Any]:
    """Return a token's probability with the keys in the order of this API."""
    names = ("token", "logprob") if brief else ("token", "bytes", "logprob")
    result = {name: row[name] for name in names}
    if "top_logprobs" in row:
        result["top_logprobs"] = [_probability(inner, brief=brief) for inner in row["top_logprobs"]]
    return result
