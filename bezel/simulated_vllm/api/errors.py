"""Error responses of the server: `{"error": {message, type, param, code}}`, pydantic's errors as vLLM prints them."""

from __future__ import annotations

import functools
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# JSON without spaces, non-ASCII characters unescaped.
compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
# Objects of the responses with the values that never differ, in the order of vLLM's keys.
TEMPLATES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("templates.json").read_bytes())
_LONGEST_INPUT = 200
_LONGEST_ERROR = 1000
_BRANCHES = {"str", "int", "float", "bool", "list", "dict"}


class ApiError(Exception):
    """An error response.

    Args:
        message: the text for the client.
        kind: the error's `type`.
        param: the refused parameter, None if there is none.
        status: the HTTP status, repeated as `code`.
    """

    def __init__(
        self, message: str, kind: str = "BadRequestError", param: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": status}}

    def response(self) -> Response:
        """Return the error as an HTTP response."""
        return json_response(self.body, self.status)


def invalid(message: str, parameter: str, *value: object) -> ApiError:
    """Return the error of a refused parameter; vLLM appends its name and, where there is one, its value."""
    suffix = f"(parameter={parameter}, value={value[0]})" if value else f"(parameter={parameter})"
    return ApiError(f"{message} {suffix}", param=parameter)


def refused(name: str, /, **values: object) -> ApiError:
    """Return vLLM's error of that name in `errors.toml`, with the values in its text; `value` is that of `param`."""
    row = _errors()[name]
    text, param = row["text"].format(**values), row.get("param", "").format(**values)
    if "named" in row:
        return invalid(text, param, *([values["value"]] if "value" in values else []))
    return ApiError(text, row.get("type", "BadRequestError"), param or None, row.get("status", 400))


@functools.cache
def _errors() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("errors.toml").read_text(encoding="utf-8"))


def malformed(errors: Sequence[Mapping[str, Any]]) -> ApiError:
    """Return the error of a body that does not have the right shape.

    Args:
        errors: pydantic's errors; `loc` starts with "body".
    """
    shown = []
    for error in errors:
        row = {**error, "loc": _place(error["loc"])}
        if "input" in row:
            row["input"] = _summary(row["input"])
        shown.append("  " + _cut(str(row), _LONGEST_ERROR))
    count = f"{len(shown)} validation error{'s' if len(shown) > 1 else ''}"
    return ApiError("\n".join([f"{count}:", *shown]), "Bad Request", _place(errors[0]["loc"]))


def json_response(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(compact(body).encode(), status, headers, media_type="application/json")


def _place(location: Sequence[object]) -> str:
    """Return a location without pydantic's names for the branches of a union."""
    parts = [str(part) for part in location]
    return ".".join(part for part in parts if "[" not in part and part not in _BRANCHES)


def _summary(value: object) -> str:
    if isinstance(value, dict | list | tuple):
        return f"<{type(value).__name__} of {len(value)} items>"
    return _cut(str(value), _LONGEST_INPUT)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "...[truncated]"
