"""Pages of a list and the tokens that lead from one to the next. Pure."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from bezel.localcloud.core.errors import invalid

Items = list[tuple[str, Any]]


def page_of(items: Items, size: int, token: str, method: str) -> tuple[Items, str]:
    """(what stands on a page, the token of the next one or "").

    Args:
        items: (key, item) of the whole list in the order of the keys.
        size: How many stand on a page, at least 1.
        token: Of this page; "" for the first one.
        method: What the list is a list of, such as the path of the request: a token is good for its own list only.

    Raises:
        ApiError: INVALID_ARGUMENT for a token that was not given out for this list.
    """
    after = opened(token, method)
    rest = [item for item in items if item[0] > after] if after else items
    shown = rest[:size]
    return shown, sealed(shown[-1][0], method) if len(rest) > size else ""


def sealed(key: str, method: str) -> str:
    """The token of a list for what comes after a key."""
    return base64.urlsafe_b64encode(f"{_mark(method)}\n{key}".encode()).rstrip(b"=").decode()


def opened(token: str, method: str) -> str:
    """The key in a token; "" in none.

    Raises:
        ApiError: INVALID_ARGUMENT for a token that was not given out for this list.
    """
    if not token:
        return ""
    try:
        given, _, key = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True).decode().partition("\n")
    except ValueError:  # no base64, or no text in it
        given, key = "", ""
    if given != _mark(method) or not key:
        text = "Invalid page token: give the nextPageToken of the page before, to the same method, or none."
        raise invalid(text, ("page_token", "is not valid"))
    return key


def _mark(method: str) -> str:
    return hashlib.sha256(method.encode()).hexdigest()[:12]
