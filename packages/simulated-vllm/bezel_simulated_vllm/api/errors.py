"""Error responses of the server: `{"error": {message, type, param, code}}`, pydantic's errors as vLLM prints them."""

from __future__ import annotations

import functools
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bezel_simulated_vllm.release import is_since

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# JSON without spaces, non-ASCII characters unescaped.
compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
# Objects of the responses with the values that never differ, in the order of vLLM's keys.
TEMPLATES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("templates.json").read_bytes())
_LONGEST_INPUT = 200
_LONGEST_ERROR = 1000
_MOST_ERRORS = 10
# Parts of a location that name pydantic's branches and wrappers, not a field.
_BRANCHES = {
    *("function-wrap", "function-after", "function-before", "function-plain", "json-or-python", "lax-or-strict"),
    *("chain", "default", "nullable", "tagged-union", "union", "call", "arguments", "is-instance", "is-subclass"),
    *("callable", "str", "int", "float", "bool", "bytes", "bytearray", "list", "tuple", "dict", "set", "frozenset"),
    *("complex", "none", "nonetype"),
}
_BRACKETS = frozenset("[](){}")


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


class EngineRefusedError(ApiError):
    """An error of the engine: a client that streams gets it inside the stream."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(str(error))
        self.status, self.body = error.status, error.body


def invalid(message: str, parameter: str, *value: object) -> ApiError:
    """Return the error of a refused parameter; vLLM appends its name and, where there is one, its value."""
    has_value = value and value[0] is not None
    suffix = f"(parameter={parameter}, value={value[0]})" if has_value else f"(parameter={parameter})"
    return ApiError(f"{message} {suffix}", param=parameter)


def api_error(name: str, /, **values: object) -> ApiError:
    """Return vLLM's error of that name in `errors.toml`, with the values in its text; `value` is that of `param`."""
    row = _errors()[name]
    for release, changed in row.get("since", {}).items():  # in the order of the releases
        row = row | changed if is_since(release) else row
    text, param = row["text"].format(**values), row.get("param", "").format(**values)
    if "named" in row:
        return invalid(text, param, *([values["value"]] if "value" in values else []))
    return ApiError(text, row.get("type", "BadRequestError"), param or None, row.get("status", 400))


@functools.cache
def _errors() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("errors.toml").read_text(encoding="utf-8"))


def shape_error(errors: Sequence[Mapping[str, Any]]) -> ApiError:
    """Return the error of a body that does not have the right shape.

    Args:
        errors: pydantic's errors; `loc` starts with "body".
    """
    label = "error" if len(errors) == 1 else "errors"
    rows = [f"{len(errors)} validation {label}:"]
    for error in errors[:_MOST_ERRORS]:
        row = {**error, "loc": _place(error["loc"])}
        if "input" in row:
            row["input"] = _summary(row["input"])
        rows.append("  " + _cut(str(row), _LONGEST_ERROR))
    if len(errors) > _MOST_ERRORS:
        rows.append(f"  ...and {len(errors) - _MOST_ERRORS} more {label}")
    return ApiError("\n".join(rows), "Bad Request", _place(errors[0]["loc"]))


def json_response(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(compact(body).encode(), status, headers, media_type="application/json")


def _place(location: Sequence[object]) -> str:
    """Return a location without pydantic's names for the branches of a union."""
    parts = [str(part) for part in location]
    named = [part for part in parts if not _BRACKETS & set(part) and part.lower() not in _BRANCHES]
    return ".".join(named or parts)


def _summary(value: object) -> str:
    if isinstance(value, dict | list | tuple):
        return f"<{type(value).__name__} of {len(value)} items>"
    return _cut(str(value), _LONGEST_INPUT)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "...[truncated]"
