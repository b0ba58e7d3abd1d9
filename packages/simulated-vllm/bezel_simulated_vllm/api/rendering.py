"""Prompts: from messages to the text of the chat template and to token ids, with what vLLM refuses on that way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_core import ValidationError

from bezel_simulated_vllm.api.errors import ApiError, api_error, shape_error
from bezel_simulated_vllm.api.validation.recorded import validator
from bezel_simulated_vllm.scheduling.tokenizer import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel_simulated_vllm.api.bodies import ChatBody, CompletionBody, TokenizeBody
    from bezel_simulated_vllm.api.routes.pooling_bodies import InputBody
    from bezel_simulated_vllm.configuration.settings import EngineSettings

# Prompt tokens of one image and of one short piece of audio.
_IMAGE_TOKENS, _AUDIO_TOKENS = 256, 188
# The bound of characters in a token: in vLLM the length of the vocabulary's longest token.
_CHARACTERS_PER_TOKEN = 34
_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal", "thinking": "thinking"}
_MEDIA = {
    *("input_image", "image_url", "image_embeds", "audio_embeds", "video_embeds", "prompt_embeds", "image_pil"),
    *("audio_url", "input_audio", "video_url"),
}

# Media whose form is validated before anything else of them.
_VALIDATED_MEDIA = {"image_url", "input_image", "audio_url", "video_url"}
_OPTIONAL_TEXTS = {"text", "refusal"}
_SKIPPED = object()


def check_template(body: ChatBody | TokenizeBody | InputBody) -> None:
    """Refuse a template or options of the media's preprocessing that a request brings along.

    Raises:
        ApiError: the server does not trust requests so far.
    """
    if body.chat_template is not None or (body.chat_template_kwargs or {}).get("chat_template") is not None:
        raise api_error("template")
    for name, what in (("mm_processor_kwargs", "preprocessing"), ("media_io_kwargs", "media loading")):
        if getattr(body, name):
            raise api_error("media-options", name=name, what=what)


def check_length(body: ChatBody | CompletionBody, limit: int | None, max_model_len: int, name: str) -> None:
    """Refuse more output tokens, or a longer prompt after its truncation, than the context holds.

    Args:
        body: the call.
        limit: the client's limit of output tokens; a lower one is cut to the room after the prompt.
        max_model_len: the length of the context.
        name: the client's name of its limit.

    Raises:
        ApiError: one of them is longer.
    """
    if limit is not None and limit > max_model_len:
        raise api_error("max-tokens", name=name, value=limit, length=max_model_len)
    if body.truncate_prompt_tokens is not None and body.truncate_prompt_tokens > max_model_len:
        raise api_error("truncation", value=body.truncate_prompt_tokens, length=max_model_len)


def messages_text(
    messages: list[dict[str, Any]], settings: EngineSettings, *, generate: bool = True, think: bool = False
) -> str:
    """Return the messages in the form of the chat template; images and audio become their placeholder tokens.

    Raises:
        ApiError: there are no messages, a message has a part that the model cannot read, or there is no template.
    """
    for message in messages:
        if not isinstance(message, dict):  # a message of another library's form, which a body may have
            raise api_error("python", text="'Message' object is not subscriptable")
    contents = [_content(message.get("content"), settings) for message in messages]
    _check_calls(messages)
    if not settings.has_template:
        raise api_error("no-template")
    if not messages:
        raise api_error("no-messages")
    text = "<bos>"
    if think:
        system = ""
        if messages[0].get("role") in {"system", "developer"}:
            system, messages, contents = contents[0], messages[1:], contents[1:]
        text += f"<|turn>system\n<|think|>{system}<turn|>\n"
    for message, content in zip(messages, contents, strict=True):
        role = "model" if message.get("role") == "assistant" else message.get("role", "user")
        text += f"<|turn>{role}\n{content}<turn|>\n"
    return text + ("<|turn>model\n" if generate else "")


def _content(content: object, settings: EngineSettings) -> str:
    if isinstance(content, str):
        return content.strip()
    read = (_part(part, settings) for part in _items_of(() if content is None else content))
    return "".join(text.strip() for text in _check_texts([text for text in read if text is not _SKIPPED]))


def _calls_of(calls: Any) -> list[Any]:
    """Return the calls of a message: they are validated when they are read, as a body is.

    Raises:
        ApiError: a call is refused.
    """
    try:
        return list(calls)
    except ValidationError as error:
        raise shape_error([{**row, "loc": ("body", *row["loc"])} for row in error.errors(include_url=False)]) from None


def _items_of(items: Any) -> list[Any]:
    """Return the items of a list of a body: they are validated when they are read, and the error is reported as it is.

    Raises:
        ApiError: an item is refused.
    """
    try:
        return list(items)
    except ValidationError as error:
        raise ApiError(str(error)) from None


def _check_texts(texts: list[Any]) -> list[str]:
    """Return the texts of a message's parts, which the real server joins.

    Raises:
        ApiError: one is no text.
    """
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise api_error("no-text", place=place, kind=type(text).__name__)
    return texts


def _part(part: object, settings: EngineSettings) -> Any:
    """Return the text of a part, whatever the client has in its place; _SKIPPED for a part without any."""
    if not isinstance(part, dict):
        return part
    kind = part.get("type")
    if kind is None:
        kind = next((name for name in part if name in _MEDIA), None)
        if kind is None:
            raise api_error("part-untyped")
    if kind in _TEXTS:
        text = part.get(_TEXTS[kind])
        return _SKIPPED if text is None and kind in _OPTIONAL_TEXTS else text
    if kind == "tool_reference":
        return part.get("name")
    if kind not in _MEDIA:
        raise api_error(
            "part-type", kind=kind, known=", ".join(sorted({*_TEXTS, *_MEDIA, "tool_reference"})), value=kind
        )
    if kind in _VALIDATED_MEDIA and part.get("type") is not None and part.get("uuid") is None:
        try:
            validator(kind, settings.release).validate_python(part)
        except ValidationError as error:
            raise ApiError(str(error)) from None
    if not settings.model.multimodal:
        raise api_error("no-media", model=settings.served_names[0])
    return "<|image|>" * _IMAGE_TOKENS if "image" in kind else "<|audio|>" * _AUDIO_TOKENS


def _check_calls(messages: list[dict[str, Any]]) -> None:
    """Refuse tool calls of an assistant's message that no template knows."""
    for message in messages:
        calls = message.get("tool_calls") if message.get("role") == "assistant" else None
        for call in _calls_of(calls or ()):
            if not isinstance(call, dict):
                raise api_error("call-form")
            if call.get("type", "function") != "function" or not isinstance(call.get("function"), dict):
                raise api_error("call-type")


def tokens_of(
    prompt: str | Sequence[int], max_model_len: int, truncation: int | None = None, side: str | None = None
) -> Sequence[int]:
    """Return the token ids of a prompt, a text or ids; like vLLM's, the refusal names the limit plus one as the count.

    Args:
        prompt: the text, or the ids.
        max_model_len: the length of the context.
        truncation: the most tokens that are kept, None for all of them, -1 for as many as fit.
        side: the side that is cut off.

    Raises:
        ApiError: the prompt is empty, is no text that can be encoded, or is longer than the model's context.
    """
    bound = _CHARACTERS_PER_TOKEN * max_model_len
    if isinstance(prompt, str) and len(prompt) > bound and truncation is None:
        raise api_error("too-many-characters", length=max_model_len, bound=bound, value=len(prompt))
    tokens = encode_prompt(prompt) if isinstance(prompt, str) else prompt
    if truncation is not None:
        kept = max_model_len - 1 if truncation == -1 else truncation
        tokens = tokens[:kept] if side == "right" or kept == 0 else tokens[-kept:]
    if len(tokens) > max_model_len:
        is_lower_bound = isinstance(prompt, str) or len(tokens) == max_model_len + 1
        count = max_model_len + 1 if is_lower_bound else len(tokens)
        raise api_error(
            "too-many-tokens", length=max_model_len, least="at least " if is_lower_bound else "", value=count
        )
    return tokens


def encode_prompt(text: str) -> list[int]:
    """Return the token ids of a text.

    Raises:
        ApiError: the text holds half of a surrogate pair.
    """
    try:
        return encode(text)
    except UnicodeEncodeError:
        raise api_error("surrogate") from None


def reused_ids(body: ChatBody) -> None:
    """Check the ids of a prompt that another server has made of the messages.

    Raises:
        ApiError: they are no ids.
    """
    ids = (body.kv_transfer_params or {}).get("prompt_token_ids")
    if ids is None or body.echo:
        return
    if not isinstance(ids, list) or not ids or any(type(token) is not int or token < 0 for token in ids):
        raise api_error("reused-ids")


def check_ids(tokens: Sequence[int]) -> None:
    """Refuse ids that no vocabulary has.

    Raises:
        ApiError: there are none, or one is negative.
    """
    if not tokens:
        raise api_error("no-tokens")
    if min(tokens) < 0:
        raise api_error("unknown-token", token=min(tokens))
