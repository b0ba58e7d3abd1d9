"""Rules of the bodies of models that pool: removed parameters, conversations as input, inputs of Cohere's form."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticKnownError

from bezel_simulated_vllm.api.errors import invalid

_REMOVED_TASKS = {
    "score": "`score` task was removed; use `classify` instead.",
    "encode": "`encode` task was removed; use `token_embed` or `token_classify` instead.",
}


def removed_parameters(data: Any) -> Any:
    """Check that a body has no parameter and no task that vLLM removed."""
    if not isinstance(data, dict):
        return data
    if "normalize" in data:
        raise invalid("Parameter `normalize` was removed; use `use_activation` instead.", "normalize")
    task = data.get("task")
    if isinstance(task, str) and task in _REMOVED_TASKS:
        raise invalid(_REMOVED_TASKS[task], "task")
    return data


def conversation(data: Any) -> Any:
    """Return the body with the conversation of `input` as its messages."""
    return _with_messages(data) if isinstance(data, dict) and is_conversation(data.get("input")) else data


def conversations(data: Any) -> Any:
    """Return the body with the conversations of `input` as its messages."""
    values = data.get("input") if isinstance(data, dict) else None
    is_batch = isinstance(values, list) and bool(values) and all(map(is_conversation, values))
    return _with_messages(data) if is_batch else data


def is_conversation(value: Any) -> bool:
    """Whether a value is a list of messages with roles."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and isinstance(each.get("role"), str) for each in value)
    )


def _with_messages(data: dict[str, Any]) -> dict[str, Any]:
    return data if "messages" in data else {**data, "messages": data["input"]}


def cohere_part(part: Any) -> Any:
    """Check that a part of an input has what its type needs. It is reported as pydantic's error, as in vLLM."""
    if part.type == "text":
        if part.text is None:
            raise ValueError("CohereEmbedContent with type='text' requires text")
    elif not part.image_url or not part.image_url.get("url"):
        raise ValueError("CohereEmbedContent with type='image_url' requires image_url.url")
    return part


def cohere_inputs(body: Any) -> Any:
    """Check that a body has one kind of inputs. It is reported as pydantic's error, as in vLLM."""
    given_fields = [field for field in (body.texts, body.images, body.inputs) if field is not None]
    if len(given_fields) != 1 or not given_fields[0]:
        raise ValueError("Exactly one of texts, images, or inputs must be provided, and it must be non-empty")
    return body


def at_least_one(value: Any) -> Any:
    """Check that a sequence is not empty. Source: pydantic 2.14, `min_length_validator` of its own checks."""
    try:
        is_short = len(value) < 1
    except TypeError:
        raise TypeError("Unable to apply constraint 'min_length' to supplied value") from None
    if is_short:
        raise PydanticKnownError("too_short", {"field_type": "Value", "min_length": 1, "actual_length": len(value)})
    return value
