"""Check that a request is HTTP/1.1 by RFC 9112, and the response to all others.

Google's front end refuses malformed requests itself; neither an API nor an instance behind it sees them.

h11 checks the grammar of lines and headers, the framing, and that there is one `Host`. This module adds the checks that
h11 lacks: a target in none of the four forms, a fragment, a version other than 1.x, a `Host` without a name, control
characters in a value, a length beside chunks, and heads of more than 64 KiB. A tunnel (`CONNECT`) is not served.

A target that is a whole URL is valid: it is replaced by its path, and its host replaces `Host` (RFC 9112, 3.2.2), so
that later code handles one form only.

Leaves out access checks and bodies that are too long (`bezel.loopback.asgi_guard`).
"""

import re
from urllib.parse import unquote

from starlette.types import Scope

LONGEST_HEAD = 64 * 1024
_PAGE = """\
<!DOCTYPE html>
<html lang=en><meta charset=utf-8><title>Error 400 (Bad Request)!!1</title>
<p><b>400.</b> That's an error.<p>Your client has issued a malformed or illegal request.
"""
REFUSAL = (
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/html; charset=UTF-8\r\n"
    f"Content-Length: {len(_PAGE)}\r\nConnection: close\r\n\r\n{_PAGE}"
).encode()
"""The whole response to a malformed request; the connection ends with it."""

_ESCAPED = rb"%[0-9A-Fa-f]{2}"
_NAME = rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|" + _ESCAPED + rb")*)(?::[0-9]*)?"
_PATH = rb"/(?:[\w.~!$&'()*+,;=:@/-]|" + _ESCAPED + rb")*"
_HOST = re.compile(_NAME)
_ORIGIN = re.compile(_PATH)
_QUERY = re.compile(rb"(?:[\w.~!$&'()*+,;=:@/?-]|" + _ESCAPED + rb")*")
_WHOLE = re.compile(rb"(?i:https?)://(?P<host>(?!:|/|$)" + _NAME + rb")(?P<path>" + _PATH + rb")?")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_IN_A_LINE, _IN_THE_FIRST = 4, 12  # ": " and the end of a line; two spaces, the version and the end


def well_formed(scope: Scope) -> Scope | None:
    """Return a request with a path as its target; None if it is not HTTP/1.1.

    Args:
        scope: uvicorn's scope of a request that h11 accepted.
    """
    names = [name for name, _ in scope["headers"]]
    framed_twice = b"transfer-encoding" in names and (b"content-length" in names or scope["http_version"] == "1.0")
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if (
        not scope["http_version"].startswith("1.")
        or framed_twice
        or not all(map(_HOST.fullmatch, hosts))
        or not all(_VALUE.fullmatch(value) for _, value in scope["headers"])
        or not _QUERY.fullmatch(scope["query_string"])
        or _length(scope) > LONGEST_HEAD
    ):
        return None
    target: bytes = scope["raw_path"]
    if _ORIGIN.fullmatch(target):
        return scope if scope["method"] != "CONNECT" else None
    if target == b"*":
        return scope if scope["method"] == "OPTIONS" and not scope["query_string"] else None
    if not (whole := _WHOLE.fullmatch(target)) or scope["method"] == "CONNECT":
        return None
    path = whole["path"] or b"/"
    headers = [(b"host", whole["host"]), *((name, value) for name, value in scope["headers"] if name != b"host")]
    return {**scope, "raw_path": path, "path": unquote(path.decode()), "headers": headers}


def _length(scope: Scope) -> int:
    """Length of the head as it is sent to the application behind."""
    lines = sum(len(name) + len(value) + _IN_A_LINE for name, value in scope["headers"])
    return lines + len(scope["method"]) + len(scope["raw_path"]) + len(scope["query_string"]) + _IN_THE_FIRST
