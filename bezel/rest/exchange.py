"""A single HTTP exchange with an API, without retries, and the parsing of its response."""

import json as json_module
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bezel.rest.errors import ApiError

if TYPE_CHECKING:
    import httpx


def post_once(client: "httpx.Client", url: str, body: Any, headers: Mapping[str, str]) -> dict[str, Any]:
    """Send one POST without retries, for the tokens that authorise all other requests.

    Raises:
        ApiError: It was refused, or there was no response (status 0).
    """
    import httpx

    try:
        answer = client.post(url, json=body, headers=dict(headers))
    except httpx.HTTPError as error:
        raise ApiError(0, "UNREACHABLE", reason_of(error), method="POST", url=url) from None
    if not answer.is_success:
        raise ApiError.of(answer.status_code, answer.content, method="POST", url=url)
    return json_object(answer, "POST", url)


def json_object(answer: "httpx.Response", method: str, url: str) -> dict[str, Any]:
    """Return the JSON object of a response, {} for an empty body.

    Raises:
        ApiError: The body is not a JSON object.
    """
    if not answer.content.strip():
        return {}
    try:
        parsed = json_module.loads(answer.content)
    except ValueError:
        raise ApiError(answer.status_code, "", "the answer is no JSON", method=method, url=url) from None
    if not isinstance(parsed, dict):
        raise ApiError(answer.status_code, "", "the answer is no JSON object", method=method, url=url)
    return parsed


def reason_of(error: Exception) -> str:
    """Return an error as one line: its type, and its text where it has one."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
