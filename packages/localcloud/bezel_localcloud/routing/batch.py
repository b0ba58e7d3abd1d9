"""Batch requests: several calls of one API in the parts of one request, each with a response of its own.

Every API has them at the `batchPath` of its discovery document. Source: Cloud Storage's page on batch requests. Parts
are calls like any other, by the same routes, with their own tokens or that of the batch; uploads and downloads are
refused, as Google does. Google documents a limit of 100 calls; its Python library puts up to 1000 in one.
"""

import asyncio
import json
import re
import uuid
from collections.abc import Awaitable, Callable, Sequence
from email.message import Message as Head
from email.parser import HeaderParser
from http.client import responses
from urllib.parse import unquote, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Scope

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.http.methods import api_prefixes, unserved_method
from bezel_localcloud.http.multipart import head_and_content, parts_of
from bezel_localcloud.http.request_bodies import LARGEST_MESSAGE, unpack_body

_CALLS = 1000
_LARGEST_ANSWER = 64 << 20  # bytes of all responses; calls behind that are not made
# APIs whose batches have a place of their own beside the API's prefix.
_WITH_VERSION = ("storage/v1", "compute/v1", "compute/beta")
_MEDIA = re.compile("(?:/[a-z0-9]+)?/(?:batch|upload|download|resumable)(?:/|$)")
_VERSION = re.compile("/(?:v[0-9][a-z0-9]*|apis?)[/:]")


def routes(application: Callable[[], ASGIApp]) -> list[Route]:
    """The routes of all APIs' batches.

    Args:
        application: Returns what answers the parts.
    """
    places = {f"/{prefix}/batch": f"/{prefix}/" for prefix in sorted(api_prefixes())}
    places |= {f"/batch/{place}": f"/{place}/" for place in _WITH_VERSION} | {"/batch": ""}

    def endpoint_of(within: str) -> Callable[[Request], object]:
        async def endpoint(request: Request) -> Response:
            try:
                return await _answer(unpack_body(request, LARGEST_MESSAGE), application(), within)
            except ApiError as error:
                return JSONResponse(error.body(), error.status)

        return endpoint

    return [Route(path, endpoint_of(within), methods=["POST"]) for path, within in places.items()]


async def _answer(request: Request, application: ASGIApp, within: str) -> Response:
    """Answer every call of a batch, in its order."""
    head = _head(f"content-type: {request.headers.get('content-type', '')}")
    boundary = str(head.get_param("boundary") or "")
    if head.get_content_type() != "multipart/mixed" or not boundary:
        raise invalid("Failed to parse batch request, error: missing multipart/mixed boundary.")
    body = await request.body()
    pieces = parts_of(body, boundary, _CALLS)
    if not 0 < len(pieces) <= _CALLS:
        number = f"more than {_CALLS}" if pieces else "no"
        raise invalid(f"The batch request has {number} calls: it must have between 1 and {_CALLS}.")

    async def answer(piece: bytes, full: bool) -> bytes:
        return await _part(request, application, within, piece, full=full)

    answers = await in_turn(pieces, answer, _LARGEST_ANSWER)
    mark = f"batch_{uuid.uuid4().hex}"
    content = b"".join(b"--" + mark.encode() + b"\r\n" + answer + b"\r\n" for answer in answers)
    return Response(content + f"--{mark}--\r\n".encode(), media_type=f"multipart/mixed; boundary={mark}")


async def in_turn(
    pieces: Sequence[bytes], answer: Callable[[bytes, bool], Awaitable[bytes]], largest: int
) -> list[bytes]:
    """The answers to some calls, one after the other; other requests get their turn between two.

    Args:
        pieces: The calls.
        answer: Answers a call; the second argument is whether all before have more than `largest` bytes.
        largest: Bytes of answers behind which no call is made any more.
    """
    answers: list[bytes] = []
    size = 0
    for piece in pieces:
        answers.append(await answer(piece, size > largest))
        size += len(answers[-1])
        await asyncio.sleep(0)
    return answers


async def _part(outer: Request, application: ASGIApp, within: str, piece: bytes, *, full: bool) -> bytes:
    """The response part of one call; with `full`, a refusal instead."""
    outer_head, inner = _halves(piece)
    inner_head, content = _halves(inner)
    line, _, lines = inner_head.partition("\n")
    identifier = _head(outer_head).get("content-id", "")
    named = f"Content-ID: <response-{identifier.strip('<>')}>\r\n" if identifier else ""
    try:
        if full:
            raise invalid(f"The responses before this call have more than {_LARGEST_ANSWER} bytes: send it alone.")
        verb, target = _request_line(line, within)
    except ApiError as error:
        status, headers, body = 400, [(b"content-type", b"application/json")], json.dumps(error.body()).encode()
    else:
        status, headers, body = await _call(
            outer, application, verb, target, _head(lines), content.strip(b"\r\n") if verb == "GET" else content
        )
    if b"content-length" not in dict(headers):  # Ruby's client reads no part that has no header at all, as of a 204
        headers = [*headers, (b"content-length", str(len(body)).encode())]
    shown = "".join(f"{name.decode('latin-1').title()}: {value.decode('latin-1')}\r\n" for name, value in headers)
    start = f"Content-Type: application/http\r\n{named}\r\nHTTP/1.1 {status} {responses.get(status, '')}\r\n{shown}\r\n"
    return start.encode("latin-1") + body


def _request_line(line: str, within: str) -> tuple[str, str]:
    parts = line.split()
    if len(parts) < 2:
        raise invalid(f"Failed to parse batch request, error: malformed request line {line!r}.")
    target = urlsplit(parts[1])
    path = target.path
    if within and not within.startswith(("/storage/", "/compute/")) and _VERSION.match(path):
        path = within.rstrip("/") + path  # Google's own path, as the batch is at the API's own place
    is_known = path.startswith(within) if within else _is_of_an_api(parts[0], path)
    if not is_known or _MEDIA.match(path) or "alt=media" in target.query.split("&"):
        of = within or "the APIs"
        raise invalid(f"A batch holds calls of {of} without media, not {parts[0]} {target.path}.")
    return parts[0], path + (f"?{target.query}" if target.query else "")


def _is_of_an_api(verb: str, path: str) -> bool:
    return path.split("/", 2)[1:2] != [] and (
        path.split("/", 2)[1] in api_prefixes() or _VERSION.match(path) is not None or bool(unserved_method(verb, path))
    )


async def _call(
    outer: Request, application: ASGIApp, verb: str, target: str, head: Head, body: bytes
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Send one call through the application; a call without a token uses that of the batch."""
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

    await application(scope, receive, send)
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return int(sent[0]["status"]), list(sent[0]["headers"]), content


def _halves(piece: bytes) -> tuple[str, bytes]:
    """Head and body of a part, whose lines end with a line feed with or without a carriage return.

    Raises:
        ApiError: INVALID_ARGUMENT for a head that is too long.
    """
    head, content = head_and_content(piece.lstrip(b"\r\n"))
    return head.decode("latin-1").replace("\r\n", "\n"), content


def _head(lines: str) -> Head:
    return HeaderParser().parsestr(lines)
