"""Uploads by `X-Goog-Upload-*` headers, the protocol of Google's gems for REST: commands in place of byte ranges.

`X-Goog-Upload-Protocol` takes the place of uploadType. A resumable upload is opened by `start`, asked about by `query`,
gets its bytes by `upload` with an offset, ends by `finalize`, which may come with the last bytes, or by `cancel`.
Source: the gems' own transport (google-api-client 0.50, core/upload.rb), and Google's description of resumable uploads
of its Photos Library API, which has the same headers. Leaves out sessions (sessions.py).
"""

from starlette.responses import JSONResponse, Response

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import ApiError, NotServedError, invalid
from bezel_localcloud.http.partial_response import select_fields
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.objects.metadata import object_json
from bezel_localcloud.services.storage.uploads.content_range import Part
from bezel_localcloud.services.storage.uploads.sessions import cancel, receive_chunk

_PREFIX = "X-Goog-Upload-"
_GRANULARITY = 262_144  # bytes
# Commands to a session -> whether the request has bytes, and whether they are the last ones.
_COMMANDS = {
    frozenset({"query"}): (False, False),
    frozenset({"upload"}): (True, False),
    frozenset({"upload", "finalize"}): (True, True),
    frozenset({"finalize"}): (False, True),
}
_KINDS = {"raw": "media", "multipart": "multipart", "resumable": "resumable"}


def commands(call: Call) -> frozenset[str]:
    """The commands of a request, none for one in another protocol."""
    parts = call.request.headers.get(f"{_PREFIX}Command", "").lower().split(",")
    return frozenset(word.strip() for word in parts if word.strip())


def upload_type(call: Call) -> str:
    """The kind of an upload: its uploadType, or what the protocol's header has in place of it.

    Raises:
        ApiError: NotServedError for a protocol that is not served; INVALID_ARGUMENT for a resumable upload without the
            command `start`.
    """
    protocol = call.request.headers.get(f"{_PREFIX}Protocol", "").lower()
    if not protocol:
        return call.query("uploadType")
    if protocol not in _KINDS:
        raise NotServedError(f"localcloud does not serve {_PREFIX}Protocol: {protocol}; send each upload alone.")
    if protocol == "resumable" and commands(call) != {"start"}:
        raise invalid(f"A resumable upload is opened by {_PREFIX}Command: start.")
    return _KINDS[protocol]


def content_type(call: Call) -> str:
    """The content's type, which the request that opens a session names."""
    names = ("X-Upload-Content-Type", f"{_PREFIX}Header-Content-Type")
    return next((value for name in names if (value := call.request.headers.get(name))), "")


def opening_response(call: Call, response: Response) -> Response:
    """The response to a request that opened a session, in the protocol that it came in."""
    if commands(call):
        address = response.headers["location"]
        response.headers.update(_status("active", 0) | {f"{_PREFIX}URL": address, f"{_PREFIX}Control-URL": address})
        response.headers[f"{_PREFIX}Chunk-Granularity"] = str(_GRANULARITY)
    return response


async def obey(call: Call) -> Response:
    """Carry out the commands to a session.

    Raises:
        ApiError: INVALID_ARGUMENT for other commands, an offset that is none, or one beyond the bytes that are there.
    """
    requested = commands(call)
    if requested == {"cancel"}:
        cancel(call)
        return Response(headers=_status("cancelled", 0))
    if requested not in _COMMANDS:
        raise invalid(f"Invalid {_PREFIX}Command: {', '.join(sorted(requested))}.")
    offset = decimal(call.request.headers.get(f"{_PREFIX}Offset", "0"))
    if offset is None:
        raise invalid(f"Invalid {_PREFIX}Offset: a number of bytes is needed.")
    has_bytes, last = _COMMANDS[requested]
    part = Part(offset if has_bytes else None, None, last)
    done = await receive_chunk(call, part)
    if isinstance(done, Response):
        size = int(done.headers.get("range", "0--1").rpartition("-")[2]) + 1 if "range" in done.headers else 0
        if (part.begin or 0) > size:
            raise ApiError("INVALID_ARGUMENT", f"{_PREFIX}Offset is {part.begin}, but {size} bytes are there.")
        return Response(headers=_status("active", size))
    answer = object_json(call, done)
    body = select_fields(answer, call.query("fields")) if call.query("fields") else answer
    return JSONResponse(body, headers=_status("final", int(answer["size"])))


def _status(word: str, size: int) -> dict[str, str]:
    return {f"{_PREFIX}Status": word, f"{_PREFIX}Size-Received": str(size)}
