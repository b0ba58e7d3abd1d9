"""Paging of lists: page contents and page tokens. Pure."""

import base64
import hashlib
from typing import Any

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json

Items = list[tuple[str, Any]]


def page_of(items: Items, size: int, token: str, method: str) -> tuple[Items, str]:
    """Return (items of a page, token of the next page or "").

    Args:
        items: (key, item) of the whole list in the order of the keys.
        size: Items of a page, at least 1.
        token: Token of this page; "" for the first one.
        method: Identity of the list, such as the path of the request: a token is valid for its own list only.

    Raises:
        ApiError: INVALID_ARGUMENT for a token that was not given out for this list.
    """
    after = open_token(token, method)
    rest = [item for item in items if item[0] > after] if after else items
    shown = rest[:size]
    return shown, seal_token(shown[-1][0], method) if len(rest) > size else ""


def newest_first(rows: Items) -> list[Json]:
    """The bodies of resources in the order of lists that show the newest one first."""
    return sorted((body for _, body in rows), key=lambda body: str(body["createTime"]), reverse=True)


def seal_token(key: str, method: str) -> str:
    """Return the token of a list for the items after a key."""
    return base64.urlsafe_b64encode(f"{_mark(method)}\n{key}".encode()).rstrip(b"=").decode()


def open_token(token: str, method: str) -> str:
    """Return the key in a token; "" for the empty token.

    Raises:
        ApiError: INVALID_ARGUMENT for a token that was not given out for this list.
    """
    if not token:
        return ""
    try:
        mark, _, key = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True).decode().partition("\n")
    except ValueError:  # no base64, or no text in it
        mark, key = "", ""
    if mark != _mark(method) or not key:
        raise bad_page_token()
    return key


def bad_page_token() -> ApiError:
    """400 for a token that was not given out for this list."""
    text = "Invalid page token: give the nextPageToken of the page before, to the same method, or none."
    return invalid(text, ("page_token", "is not valid"))


def _mark(method: str) -> str:
    return hashlib.sha256(method.encode()).hexdigest()[:12]
