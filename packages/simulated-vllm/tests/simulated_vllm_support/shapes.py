"""Shape of an answer: its status, its keys and the types of their values; of a refusal its type, parameter and message.

What the weights decide has no shape of its own: whether a text is empty, how many tokens there are, why it ended.
"""

from __future__ import annotations

import json
import re
from typing import Any

# Fields whose value may be null or not, as the generated text has it.
_FREE = {"content", "reasoning", "stop_reason", "finish_reason", "stop_sequence", "incomplete_details", "status"}
# Lists of typed blocks: which of them there are is decided by the text.
_BLOCKS = {"output", "content"}
_TOKENS = re.compile(r"\d+ input tokens|value=\d+|prompt length \(\d+\)")


def shape_of(status: int, text: str) -> list[Any]:
    """Return the shape as JSON: the status, and what there is in the body."""
    if text.startswith(("data: ", "event: ")):
        return [status, *_events(text)]
    try:
        body = json.loads(text)
    except ValueError:
        return [status, "text" if text else ""]
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict) and status >= 400:
        message = _TOKENS.sub("N", str(error.get("message")))
        return [status, {key: error[key] for key in error if key != "message"} | {"keys": list(body)}, message]
    return [status, _shape("", body)]


def alike(one: Any, other: Any) -> bool:
    """Whether two shapes are the same; of blocks, those that both have."""
    if isinstance(one, dict) and isinstance(other, dict):
        if set(one) == set(other) == {"blocks"}:
            ours, theirs = one["blocks"], other["blocks"]
            return all(alike(ours[kind], theirs[kind]) for kind in ours.keys() & theirs)
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def _events(text: str) -> list[Any]:
    """Return the shapes of the events of a stream, those alike in a row once."""
    shapes: list[Any] = []
    for line in text.splitlines():
        if line.startswith("data: "):
            data = line.removeprefix("data: ")
            try:
                event = data if data == "[DONE]" else _shape("", json.loads(data))
            except ValueError:
                event = "cut"
            if isinstance(event, dict) and "error" in event:
                event = {"error": json.loads(data)["error"]}
            if event not in shapes:
                shapes.append(event)
    return shapes


def _shape(key: str, value: Any) -> Any:
    if key in _FREE and (value is None or key == "incomplete_details" or isinstance(value, str | int)):
        return "free"
    if isinstance(value, dict):
        return _object(key, value)
    if isinstance(value, list):
        return _list(key, value)
    if key in ("type", "object", "role"):
        return value
    if isinstance(value, bool):
        return "boolean"
    return {int: "number", float: "number", str: "text", type(None): "null"}[type(value)]


def _object(key: str, value: dict[str, Any]) -> Any:
    if value and all(name.isdigit() for name in value):
        return {"id": _shape("", next(iter(value.values())))}
    left_out = _FREE if key == "delta" else set()
    return {name: _shape(name, inner) for name, inner in value.items() if name not in left_out}


def _list(key: str, value: list[Any]) -> Any:
    if key == "bytes":
        return "bytes"
    if key == "top_logprobs" and value and all(row is None or _numbers(row) for row in value):
        return "probabilities"  # by the texts of the tokens
    if key in _BLOCKS and all(isinstance(inner, dict) and "type" in inner for inner in value):
        return {"blocks": {str(inner["type"]): _shape("", inner) for inner in value}}
    if key == "choices":
        return [_shape("", inner) for inner in value]
    shapes = {json.dumps(_shape("", inner)): _shape("", inner) for inner in value}
    return [shapes[text] for text in sorted(shapes)]


def _numbers(row: Any) -> bool:
    return isinstance(row, dict) and all(isinstance(value, int | float) for value in row.values())
