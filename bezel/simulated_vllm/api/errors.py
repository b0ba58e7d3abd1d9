"""Error responses of the server: `{"error": {message, type, param, code}}`, pydantic's errors as vLLM prints them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# JSON without spaces, non-ASCII characters unescaped.
compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_LONGEST_INPUT = 200
_LONGEST_ERROR = 1000
BUSY = "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."


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


def malformed(errors: Sequence[Mapping[str, Any]]) -> ApiError:
    """Return the error of a body that does not have the right shape.

    Args:
        errors: pydantic's errors; `loc` starts with "body".
    """
    shown = []
    for error in errors:
        row = dict(error)
        row["loc"] = ".".join(str(part) for part in error["loc"] if not _internal(str(part)))
        if "input" in row:
            row["input"] = _summary(row["input"])
        text = str(row)
        shown.append(text if len(text) <= _LONGEST_ERROR else text[:_LONGEST_ERROR] + "...[truncated]")
    count = f"{len(shown)} validation error{'s' if len(shown) > 1 else ''}"
    place = ".".join(str(part) for part in errors[0]["loc"] if not _internal(str(part)))
    return ApiError(f"{count}:\n" + "\n".join(f"  {text}" for text in shown), "Bad Request", place)


def json_response(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(compact(body).encode(), status, headers, media_type="application/json")


def _internal(part: str) -> bool:
    """Whether a part of a location is pydantic's name for the branch of a union."""
    return "[" in part or part in {"str", "int", "float", "bool", "list", "dict"}


def _summary(value: object) -> object:
    if isinstance(value, dict | list | tuple):
        return f"<{type(value).__name__} of {len(value)} items>"
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_INPUT else text[:_LONGEST_INPUT] + "...[truncated]"
