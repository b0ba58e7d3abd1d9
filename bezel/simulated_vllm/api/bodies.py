"""Request bodies: the fields that are read, and the values that are refused. Unknown fields are accepted.

Shapes are checked by pydantic, whose errors vLLM passes on; ranges afterwards, with vLLM's own messages.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bezel.simulated_vllm.api.errors import ApiError, invalid, malformed, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Prompt tokens of one image and of one short piece of audio.
_IMAGE_TOKENS, _AUDIO_TOKENS = 256, 188


class Body(BaseModel):
    """Base of all bodies: unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", from_attributes=True, strict=False)


class StreamOptions(Body):
    """The `stream_options` of a body: usage in a stream beside the text."""

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class _Sampling(Body):
    model: str | None = None
    max_tokens: int | None = None
    n: int | None = 1
    min_tokens: int = 0
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    response_format: dict[str, Any] | None = None
    structured_outputs: dict[str, Any] | None = None
    return_token_ids: bool | None = None
    request_id: str | None = None
    cache_salt: str | None = None

    @property
    def stops(self) -> list[str]:
        """The stop strings."""
        return [self.stop] if isinstance(self.stop, str) else list(self.stop or [])


class _Messages(Body):
    messages: list[dict[str, Any]]


class ChatBody(_Sampling, _Messages):
    """POST /v1/chat/completions. Errors come in the order of the fields, `messages` first."""

    max_completion_tokens: int | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = 0
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    include_reasoning: bool = True
    add_generation_prompt: bool = True
    chat_template_kwargs: dict[str, Any] | None = None


class CompletionBody(_Sampling):
    """POST /v1/completions."""

    prompt: list[int] | list[list[int]] | str | list[str] | None = None
    max_tokens: int | None = 16
    logprobs: int | None = None
    suffix: str | None = None
    echo: bool | None = False


class TokenizeBody(Body):
    """POST /tokenize, with a prompt or with messages."""

    model: str | None = None
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    add_generation_prompt: bool = True
    return_token_strs: bool | None = False


class DetokenizeBody(Body):
    """POST /detokenize."""

    model: str | None = None
    tokens: list[Annotated[int, Field(ge=0)]]


BodyT = TypeVar("BodyT", bound=Body)


def read(kind: type[BodyT], content_type: str, raw: bytes) -> BodyT:
    """Parse a body of the requested kind.

    Raises:
        ApiError: it is not JSON, or does not have that shape.
    """
    content = content_of(content_type, raw)
    _check_before(kind, content)
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise malformed([{**row, "loc": ("body", *row["loc"])} for row in error.errors(include_url=False)]) from None


def content_of(content_type: str, raw: bytes) -> object:
    """Return the JSON of a body.

    Raises:
        ApiError: it is not JSON.
    """
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise refused("media-type")
    if not raw:
        raise malformed([{"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}])
    try:
        return json.loads(raw)
    except json.JSONDecodeError as error:
        row = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error", "input": {}}
        raise malformed([{**row, "ctx": {"error": error.msg}}]) from None
    except UnicodeDecodeError:
        raise refused("body") from None


def _check_before(kind: type[Body], content: object) -> None:
    """Apply the checks that vLLM makes before those of the shapes."""
    if not isinstance(content, dict):
        return
    if content.get("stream_options") and not content.get("stream"):
        raise refused("stream-options")
    if kind is CompletionBody and content.get("prompt") in (None, "") and content.get("prompt_embeds") is None:
        raise refused("no-prompt")
    if kind is TokenizeBody and "prompt" not in content and "messages" not in content:
        missing = {"type": "missing", "loc": (), "msg": "Field required", "input": content}
        raise malformed([missing | {"loc": ("body", name)} for name in ("prompt", "messages")])


# In vLLM's order. A message marked True is followed by the parameter's name and value.
_RULES: tuple[tuple[str, Callable[[Any], bool], str, bool], ...] = (
    ("n", lambda value: value >= 1, "n must be at least 1, got {}.", False),
    ("presence_penalty", lambda value: abs(value) <= 2, "presence_penalty must be in [-2, 2], got {}.", False),
    ("frequency_penalty", lambda value: abs(value) <= 2, "frequency_penalty must be in [-2, 2], got {}.", False),
    ("repetition_penalty", lambda value: value > 0, "repetition_penalty must be greater than zero, got {}.", False),
    ("temperature", lambda value: value >= 0, "temperature must be non-negative, got {}.", True),
    ("temperature", lambda value: value <= 2, "temperature must be in [0, 2], got {}.", True),
    ("top_p", lambda value: 0 < value <= 1, "top_p must be in (0, 1], got {}.", True),
    ("top_k", lambda value: value >= -1, "top_k must be 0 (disable), or at least 1, got {}.", False),
    ("min_p", lambda value: 0 <= value <= 1, "min_p must be in [0, 1], got {}.", False),
    ("max_tokens", lambda value: value >= 1, "max_tokens must be at least 1, got {}.", True),
    ("min_tokens", lambda value: value >= 0, "min_tokens must be greater than or equal to 0, got {}.", False),
)


def check_sampling(body: ChatBody | CompletionBody, max_tokens: int | None) -> None:
    """Check the ranges of the sampling parameters.

    Args:
        body: the call.
        max_tokens: the limit of output tokens, whatever its name in the body.

    Raises:
        ApiError: 400 with the refused parameter.
    """
    for name, holds, message, named in _RULES:
        value = max_tokens if name == "max_tokens" else getattr(body, name)
        if value is not None and not holds(value):
            text = message.format(value)
            raise invalid(text, name, value) if named else ApiError(text)
    if max_tokens is not None and body.min_tokens > max_tokens:
        raise refused("min-tokens", limit=max_tokens, tokens=body.min_tokens)
    if "" in body.stops:
        raise refused("empty-stop")
    if body.temperature == 0 and (body.n or 1) > 1:
        raise refused("greedy-n", n=body.n)


def messages_text(messages: list[dict[str, Any]], *, generate: bool = True, think: bool = False) -> str:
    """Return the messages in the form of the chat template; images and audio become their placeholder tokens."""
    text = "<bos>"
    if think:
        system = ""
        if messages and messages[0].get("role") in {"system", "developer"}:
            system, messages = _content(messages[0].get("content")), messages[1:]
        text += f"<|turn>system\n<|think|>{system}<turn|>\n"
    for message in messages:
        role = "model" if message.get("role") == "assistant" else message.get("role", "user")
        text += f"<|turn>{role}\n{_content(message.get('content'))}<turn|>\n"
    return text + ("<|turn>model\n" if generate else "")


def _content(content: object) -> str:
    if isinstance(content, str):
        return content.strip()
    return "".join(_part(part) for part in content if isinstance(part, dict)) if isinstance(content, list) else ""


def _part(part: Mapping[str, Any]) -> str:
    kind = str(part.get("type", "text"))
    if kind == "text":
        return str(part.get("text", "")).strip()
    return "<|image|>" * _IMAGE_TOKENS if kind.startswith("image") else "<|audio|>" * _AUDIO_TOKENS


def media(messages: list[dict[str, Any]]) -> bool:
    """Whether a message holds anything but text."""
    parts = [part for message in messages if isinstance(message.get("content"), list) for part in message["content"]]
    return any(isinstance(part, dict) and part.get("type", "text") != "text" for part in parts)
