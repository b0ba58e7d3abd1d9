"""Rules of POST /v1/decisions. They are reported as pydantic's errors, as in vLLM."""

from __future__ import annotations

from typing import Any


def no_images(data: Any) -> Any:
    """Check that a message has no images."""
    content = data.get("content") if isinstance(data, dict) else None
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") == "input_image":
            raise ValueError("Decisions supports text input only; images are not supported")
    return data


def name(question: Any) -> Any:
    """Check that a name is a text where there is one."""
    if "name" in question.__pydantic_fields_set__ and question.name is None:
        raise ValueError("name must be a string when provided")
    return question


def choices(question: Any) -> Any:
    """Check that the values of a choice differ."""
    values = [(type(choice.value), choice.value) for choice in question.choices]
    if len(set(values)) != len(values):
        raise ValueError("choice values must be distinct")
    return question
