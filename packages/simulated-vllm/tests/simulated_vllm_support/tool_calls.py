"""Answers with tool calls: what of them is compared, and those of a real server (`tools/vllm/tool_calls`).

Random weights decide the values of arguments and how long a text is; which calls there are, their ids' form, the
names of arguments, and why the answer ended are the server's.
"""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any

from simulated_vllm_support.client_requests import Asked, answer_shape
from simulated_vllm_support.samples import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterable

_FILES = "tool-calls-*.json.gz"
_RANDOM = re.compile(r"[0-9a-f]{16}|\b[A-Za-z0-9]{9}$|\b\d+$")


def called_shape(status: int, kind: str, text: str) -> list[Any]:
    """Return what is compared of an answer: as `answer_shape`, and of each choice its calls and what is beside them."""
    shape = answer_shape(status, kind, text)
    if status != 200:
        return shape
    if text.startswith("data: "):
        # Pieces of a text, of which there may be none, are left out.
        events = [event for event in shape[2:] if not _is_text(event)]
        return [*shape[:2], *events, [_choice(choice) for choice in _choices_of_stream(text)]]
    return [*shape, [_choice(choice) for choice in json.loads(text).get("choices", [])]]


def is_unwritten(asked: Asked, real: list[Any], simulated: list[Any]) -> bool:
    """Whether random weights made the difference: a call that is left out, cut, free, of another tool or arguments."""
    choice = json.loads(asked.content).get("tool_choice")
    if real[1] != 200 or simulated[1] != 200 or not real[-1] or not simulated[-1]:
        return False
    theirs, ours = real[-1][0], simulated[-1][0]
    if choice != "required" and not isinstance(choice, dict):
        return bool(choice == "auto" and ours == "text" != theirs)  # a call that nothing asked for
    if ours == "text":
        return False
    return bool(theirs == "text" or theirs[1] == "length" or (ours[0] != theirs[0] and ours[1] == theirs[1]))


def _is_text(event: Any) -> bool:
    choices = event.get("choices") if isinstance(event, dict) else None
    return (
        bool(choices)
        and choices[0].get("delta") == {}
        and "stop_reason" not in choices[0]
        and "prompt_text" not in event
    )


def _choice(choice: dict[str, Any]) -> Any:
    message = choice["message"]
    calls = message.get("tool_calls") or []
    if not calls:
        return "text"
    shown = [
        [_RANDOM.sub("N", call["id"]), call["function"]["name"], _arguments(call["function"]["arguments"])]
        for call in calls
    ]
    return [shown, choice["finish_reason"], "text" if message.get("content") else message.get("content")]


def _arguments(text: str) -> Any:
    try:
        return _names(json.loads(text))
    except ValueError:
        return "no JSON" if text else "none"


def _names(value: Any) -> Any:
    return {key: _names(inner) for key, inner in value.items()} if isinstance(value, dict) else type(value).__name__


def _choices_of_stream(text: str) -> list[dict[str, Any]]:
    """Return the choices that the events of a stream make together."""
    choices: dict[int, dict[str, Any]] = {}
    for line in text.splitlines():
        event = json.loads(line.removeprefix("data: ")) if line.startswith("data: {") else {}
        for part in event.get("choices", ()):
            whole = choices.setdefault(part["index"], {"message": {"content": "", "tool_calls": []}})
            message, delta = whole["message"], part["delta"]
            message["content"] += delta.get("content") or ""
            whole["finish_reason"] = part.get("finish_reason") or whole.get("finish_reason")
            for piece in delta.get("tool_calls") or ():
                _add(message["tool_calls"], piece)
    return [choices[index] for index in sorted(choices)]


def _add(calls: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    while len(calls) <= piece["index"]:
        calls.append({"id": "", "function": {"name": "", "arguments": ""}})
    call = calls[piece["index"]]
    call["id"] += piece.get("id") or ""
    for key in ("name", "arguments"):
        call["function"][key] += piece.get("function", {}).get(key) or ""


def write(release: str, rows: Iterable[tuple[str, Asked, list[Any]]]) -> None:
    """Write requests with their parser and the shape of the real server's answer."""
    content = [[parser, request.kind, request.content.decode(), shape] for parser, request, shape in rows]
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    (FIXTURES / f"tool-calls-{release}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def read(release: str) -> list[tuple[str, Asked, list[Any]]]:
    """Return the written requests of a release, with their parser and the shape of the real server's answer."""
    rows = json.loads(gzip.decompress((FIXTURES / f"tool-calls-{release}.json.gz").read_bytes()))
    headers = (("content-type", "application/json"),)
    return [
        (parser, Asked(kind, "POST", "/v1/chat/completions", headers, content.encode()), shape)
        for parser, kind, content, shape in rows
    ]


def releases() -> list[str]:
    """Return the releases of which answers are written."""
    return sorted(file.name.removeprefix("tool-calls-").removesuffix(".json.gz") for file in FIXTURES.glob(_FILES))


def parsers(release: str) -> list[str]:
    """Return the parsers of which answers of a release are written."""
    return list(dict.fromkeys(name for name, _, _ in read(release)))
