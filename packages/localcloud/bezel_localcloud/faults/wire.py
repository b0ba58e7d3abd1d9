"""ASGI layer around the APIs, and around each service's ingress, that applies the wire faults.

Owns the effect of a fault on one request and its response. Leaves out which request is struck (registry.py) and the
texts (data/errors.toml). localcloud's own routes below /localcloud/ are never struck, so that
a fault can always be cleared.
"""

import asyncio
import json
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bezel_localcloud.core.errors import ERRORS, ApiError, error_info
from bezel_localcloud.core.paths import PROJECT_NUMBER
from bezel_localcloud.faults.registry import Fault, Faults
from bezel_localcloud.http.serving import hang_up

LogRefusal = Callable[[Scope, int, int], None]
_OWN = "/localcloud/"
_TOKENS = frozenset({"/token", "/sts/v1/token"})


class FaultMiddleware:
    """An application with the active faults applied."""

    def __init__(self, app: ASGIApp, faults: Faults, at: str, log_refusal: LogRefusal | None = None) -> None:
        """Wrap an application.

        Args:
            app: The wrapped application.
            faults: The active faults.
            at: "api" or "service".
            log_refusal: Logs a request that a fault refused: its scope, the status, the length of the response's body.
        """
        self._app, self._faults, self._at, self._log_refusal = app, faults, at, log_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, changed by every fault that strikes it."""
        path = scope.get("path", "")
        if scope["type"] != "http" or path.startswith(_OWN):
            await self._app(scope, receive, send)
            return
        at = "token" if self._at == "api" and path in _TOKENS else self._at
        struck = {fault.kind: fault for fault in self._faults.strike(at, scope["method"], path)}
        if slow := struck.get("slow-connections"):
            await asyncio.sleep(slow.number("seconds"))
        for kind in ("server-errors", "rate-limited"):
            if fault := struck.get(kind):
                status, length = await _refuse(fault, at, path, receive, send)
                if self._log_refusal:
                    self._log_refusal(scope, status, length)
                return
        if dropped := struck.get("dropped-connections"):
            await self._drop(dropped.text("when"), scope, receive, send)
            return
        if cut := struck.get("truncated-streams"):
            send = _Truncated(send, int(cut.number("events")))
        if "malformed-json" in struck:
            send = _Malformed(send)
        await self._app(scope, receive, send)

    async def _drop(self, when: str, scope: Scope, receive: Receive, send: Send) -> None:
        if when == "body":
            await self._app(scope, receive, _Broken(scope, receive, send))
            return
        if when == "after":

            async def nowhere(_: Message) -> None:
                """Discard the response: the request takes effect, but its client gets no reply."""

            await self._app(scope, receive, nowhere)
        else:
            await _read(receive)
        await hang_up(scope, receive)


async def _refuse(fault: Fault, at: str, path: str, receive: Receive, send: Send) -> tuple[int, int]:
    """Send a refusal; return its status and the length of its body."""
    await _read(receive)
    status, headers, body = refusal(fault, at, path)
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})
    return status, len(body)


async def _read(receive: Receive) -> None:
    """Read the whole request: a close over unread bytes would send a reset, which the client sees as another error."""
    while (message := await receive())["type"] == "http.request" and message.get("more_body"):
        pass


class _Broken:
    """Sends half of the first piece of a body, then closes the connection."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._gone = False

    async def __call__(self, message: Message) -> None:
        if self._gone:
            return
        body = message.get("body", b"")
        if message["type"] == "http.response.start":
            await self._send(message)
        else:
            self._gone = True
            await self._send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
            await hang_up(self._scope, self._receive)


class _Truncated:
    """Sends some events of an event stream, then a proper end; any other response passes."""

    def __init__(self, send: Send, events: int) -> None:
        self._send, self._left = send, events
        self._streams = self._ended = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._streams = _content_type(message).startswith("text/event-stream")
        if not self._streams or message["type"] == "http.response.start":
            await self._send(message)
            return
        if self._ended:
            return
        *events, rest = message.get("body", b"").split(b"\n\n")
        passed = events[: self._left]
        self._left -= len(passed)
        self._ended = not self._left or not message.get("more_body")
        body = b"".join(event + b"\n\n" for event in passed) + (b"" if self._ended else rest)
        await self._send({"type": "http.response.body", "body": body, "more_body": not self._ended})


class _Malformed:
    """Cuts a JSON response in half and sets its length to match; any other response passes."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._held = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if _content_type(message).startswith("application/json"):
                self._start = message
            else:
                await self._send(message)
            return
        if self._start is None:
            await self._send(message)
            return
        self._held += message.get("body", b"")
        if message.get("more_body"):
            return
        half = self._held[: len(self._held) // 2]
        headers = [(key, value) for key, value in self._start["headers"] if key.lower() != b"content-length"]
        headers.append((b"content-length", str(len(half)).encode()))
        await self._send(dict(self._start) | {"headers": headers})
        await self._send({"type": "http.response.body", "body": half})


def _content_type(start: Message) -> str:
    content_types = (value for key, value in start.get("headers", []) if key.lower() == b"content-type")
    return bytes(next(content_types, b"")).decode("latin-1")


Headers = list[tuple[bytes, bytes]]

# First part of a path here -> the API's name.
_APIS = {"crm": "cloudresourcemanager", "upload": "storage"}


def refusal(fault: Fault, at: str, path: str) -> tuple[int, Headers, bytes]:
    """Status, headers (without the length) and body of the response to one struck request.

    Args:
        fault: Of the kind server-errors or rate-limited.
        at: "api", "token" or "service".
        path: Path of the request.
    """
    limited = fault.kind == "rate-limited"
    status = 429 if limited else int(fault.number("status"))
    headers = [(b"retry-after", f"{fault.number('retry_after'):g}".encode())] if limited else []
    if at == "service":
        page = f"<html><head><title>{status}</title></head><body>{_page_text(status)}</body></html>\n"
        return status, [*headers, (b"content-type", b"text/html; charset=UTF-8")], page.encode()
    if at == "token":
        body = {"error": "internal_failure", "error_description": _page_text(status)}
        return status, [*headers, (b"content-type", b"application/json")], json.dumps(body).encode()
    error = _rate_limited(path) if limited else ApiError(*_unavailable(status), status=status)
    headers.append((b"content-type", b"application/json"))
    if path.startswith("/v2/"):  # the registry protocol's own shape
        code = "TOOMANYREQUESTS" if limited else "UNKNOWN"
        return status, headers, json.dumps({"errors": [{"code": code, "message": error.message}]}).encode()
    legacy = path.startswith(("/storage/", "/upload/", "/compute/"))
    return status, headers, json.dumps(error.body(legacy=legacy)).encode()


def _unavailable(status: int) -> tuple[str, str]:
    """Code and text of a status; those of 500 or 400 for any other status."""
    refusals = ERRORS["refusals"]
    code, text = refusals.get(str(status)) or refusals["500" if status >= 500 else "400"]
    return code, text


def _rate_limited(path: str) -> ApiError:
    first = path.split("/")[1]
    service = f"{_APIS.get(first, first)}.googleapis.com"
    text = (
        f"Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service '{service}' for "
        f"consumer 'project_number:{PROJECT_NUMBER}'."
    )
    metadata = {"service": service, "consumer": f"projects/{PROJECT_NUMBER}", "quota_limit": "RequestsPerMinute"}
    return ApiError("RESOURCE_EXHAUSTED", text, [error_info("RATE_LIMIT_EXCEEDED", metadata)])


def _page_text(status: int) -> str:
    return "Rate exceeded." if status == 429 else _unavailable(status)[1]
