"""Batch requests: several calls of the JSON API in the parts of one request, each with a response of its own.

Source: Cloud Storage's page on batch requests. Parts are calls like any other, by the same routes; uploads and
downloads are refused, as Google does. Google documents a limit of 100 calls; its Python library puts up to 1000 in one.
"""

import re
import uuid
from email.message import Message as Head
from email.parser import HeaderParser
from http.client import responses
from urllib.parse import unquote, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Scope

from bezel.localcloud.core.errors import ApiError, invalid
from bezel.localcloud.routing.router import Call
from bezel.localcloud.services.storage.api import api
from bezel.localcloud.services.storage.uploads import whole

_LARGEST = 10 << 20  # bytes
_CALLS = 1000


@api.route("POST", "/batch/storage/v1", reads_body=True)
async def batch(call: Call) -> Response:
    """Answer every call of a batch, in its order."""
    head = _head(f"content-type: {call.request.headers.get('content-type', '')}")
    boundary = str(head.get_param("boundary") or "")
    if head.get_content_type() != "multipart/mixed" or not boundary:
        raise invalid("Failed to parse batch request, error: missing multipart/mixed boundary.")
    body = await whole(call, _LARGEST)
    pieces = re.split(rb"(?:\A|\r?\n)--" + re.escape(boundary.encode()) + rb"(?:--)?[ \t]*(?:\r?\n|\Z)", body)[1:-1]
    if not 0 < len(pieces) <= _CALLS:
        raise invalid(f"The batch request has {len(pieces)} calls: it must have between 1 and {_CALLS}.")
    mark = f"batch_{uuid.uuid4().hex}"
    answers = [await _part(call.request, piece) for piece in pieces]
    content = b"".join(b"--" + mark.encode() + b"\r\n" + answer + b"\r\n" for answer in answers)
    return Response(content + f"--{mark}--\r\n".encode(), media_type=f"multipart/mixed; boundary={mark}")


async def _part(outer: Request, piece: bytes) -> bytes:
    """The response part of one call."""
    outer_head, inner = _halves(piece)
    inner_head, content = _halves(inner)
    line, _, lines = inner_head.partition("\n")
    identifier = _head(outer_head).get("content-id", "")
    named = f"Content-ID: <response-{identifier.strip('<>')}>\r\n" if identifier else ""
    try:
        verb, target = _request_line(line)
    except ApiError as error:
        status, headers, body = 400, [(b"content-type", b"application/json")], error.message.encode()
    else:
        status, headers, body = await _call(
            outer, verb, target, _head(lines), content.strip(b"\r\n") if verb == "GET" else content
        )
    shown = "".join(f"{name.decode('latin-1').title()}: {value.decode('latin-1')}\r\n" for name, value in headers)
    start = f"Content-Type: application/http\r\n{named}\r\nHTTP/1.1 {status} {responses.get(status, '')}\r\n{shown}\r\n"
    return start.encode("latin-1") + body


def _request_line(line: str) -> tuple[str, str]:
    words = line.split()
    if len(words) < 2:
        raise invalid(f"Failed to parse batch request, error: malformed request line {line!r}.")
    target = urlsplit(words[1])
    path = target.path + (f"?{target.query}" if target.query else "")
    if not path.startswith("/storage/v1/") or "alt=media" in target.query.split("&"):
        raise invalid(f"A batch holds calls of /storage/v1/ without media, not {words[0]} {target.path}.")
    return words[0], path


async def _call(
    outer: Request, verb: str, target: str, head: Head, body: bytes
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Send one call through the routes of the application; a call without a token uses that of the batch."""
    path, _, query = target.partition("?")
    headers = {name.lower(): value for name, value in head.items()}
    if token := outer.headers.get("authorization"):
        headers.setdefault("authorization", token)
    headers["host"] = outer.headers.get("host", "")
    scope: Scope = {
        **{key: outer.scope[key] for key in ("type", "asgi", "http_version", "server", "client", "scheme")},
        "method": verb,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await outer.app(scope, receive, send)
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return int(sent[0]["status"]), list(sent[0]["headers"]), content


def _halves(piece: bytes) -> tuple[str, bytes]:
    """Head and body of a part, whose lines end with a line feed with or without a carriage return."""
    parts = re.split(rb"\r?\n\r?\n", piece.lstrip(b"\r\n"), maxsplit=1)
    return parts[0].decode("latin-1").replace("\r\n", "\n"), parts[1] if len(parts) == 2 else b""


def _head(lines: str) -> Head:
    return HeaderParser().parsestr(lines)
