"""Enum values by number: requests may give numbers, and responses hold them where `$alt=json;enum-encoding=int` asks.

Numbers are the positions in an enum's list in the discovery document, except for the enums of data/enums.json, which
`tools.traffic.enum_numbers` writes. A value without a known number keeps its name.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from bezel_localcloud.core.json_types import Json

_DATA = Path(__file__).parents[1] / "data"
_RESULT_TYPE = re.compile(r"type\.googleapis\.com/(?P<name>[\w.]+)")


@cache
def names_of(kind: str) -> dict[int, str]:
    """The names of an enum by number.

    Args:
        kind: "enum:A|B|C", as the definitions spell it.
    """
    text = kind.removeprefix("enum:")
    names = text.split("|")
    numbers = _exceptions().get(text, range(len(names)))
    return {number: name for number, name in zip(numbers, names, strict=True) if number is not None}


@cache
def _numbers_of(kind: str) -> dict[str, int]:
    return {name: number for number, name in names_of(kind).items()}


def with_numbers(answer: Any, message: str) -> Any:
    """A response with the numbers of its enum values in place of their names.

    Args:
        answer: JSON of a message.
        message: Name of its definition, e.g. "run.GoogleCloudRunV2Service".
    """
    api, _, name = message.partition(".")
    return _message(answer, api, name) if isinstance(answer, dict) else answer


def _message(body: Json, api: str, name: str) -> Json:
    fields = _responses().get(f"{api}.{name}", {})
    changed = {key: _value(body[key], api, kind) for key, kind in fields.items() if key in body}
    # Results and metadata of operations name their own types.
    typed = {key: (value, _name_of(value["@type"], api)) for key, value in body.items() if _is_typed(value)}
    return body | changed | {key: _message(value, api, of) for key, (value, of) in typed.items()}


def _value(value: Any, api: str, kind: str) -> Any:
    if isinstance(value, list):
        return [_value(item, api, kind.removeprefix("[]")) for item in value]
    if kind.startswith("{}"):
        return {key: _value(item, api, kind[2:]) for key, item in value.items()}
    if kind.startswith("@"):
        return _message(value, api, kind[1:])
    return _numbers_of(kind).get(value, value)


def _is_typed(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("@type"), str)


def _name_of(type_url: str, api: str) -> str:
    """The name of a message in the discovery document, of its full name: the last part, or all parts in one word."""
    match = _RESULT_TYPE.fullmatch(type_url)
    parts = match["name"].split(".") if match else [""]
    long_name = "".join(part[:1].upper() + part[1:] for part in parts)
    return long_name if f"{api}.{long_name}" in _responses() else parts[-1]


@cache
def _responses() -> dict[str, dict[str, str]]:
    messages: dict[str, dict[str, str]] = json.loads((_DATA / "responses.json").read_text(encoding="utf-8"))["messages"]
    return messages


@cache
def _exceptions() -> dict[str, list[int | None]]:
    numbers: dict[str, list[int | None]] = json.loads((_DATA / "enums.json").read_text(encoding="utf-8"))["numbers"]
    return numbers
