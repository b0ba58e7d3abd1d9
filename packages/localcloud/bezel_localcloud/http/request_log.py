"""Request log: one JSON line per request, without bodies, authorization or other secrets.

A call that a breakpoint matches is stopped here, at its boundary (breakpoints.py).
"""

import asyncio
import json
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bezel_base.credentials.headers import is_credential_parameter
from bezel_localcloud.access.checks import Checks, record_checks
from bezel_localcloud.core.files.logfile import LogFile
from bezel_localcloud.core.patterns import shell_pattern_fits

_PLAIN_QUERY = re.compile(rb"(?:[\w.~-]+=[\w.~-]*(?:&[\w.~-]+=[\w.~-]*)*)?")
When = Literal["before", "after"]


@dataclass
class Hold:
    """The `nth` matching call from now on, stopped before it is handled, or after it with its response not sent.

    Attributes:
        method: HTTP method.
        path: The path without its query; `*` matches anything.
        nth: Counted from 1.
        when: Before the call has any effect, or after all of it.
        reached: Set when the call has stopped.
        released: Set to let it continue.
        dropped: Whether a released call is dropped instead of handled, as if its caller had died before it was sent.
    """

    method: str
    path: str
    nth: int
    when: When
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    dropped: bool = False

    def takes(self, method: str, path: str) -> bool:
        """Count a matching call and return whether it is the one to stop."""
        if method != self.method or not shell_pattern_fits(self.path, path):
            return False
        self.nth -= 1
        return self.nth == 0

    async def stop(self) -> None:
        """Wait at the boundary until the hold is released."""
        self.reached.set()
        await self.released.wait()


class Breakpoints:
    """At most one hold at a time."""

    def __init__(self) -> None:
        self.hold: Hold | None = None

    def place(self, hold: Hold | None, *, drop: bool = False) -> None:
        """Release the current hold, or drop its call, and put another in its place."""
        if self.hold is not None:
            self.hold.dropped = drop
            self.hold.released.set()
        self.hold = hold

    def taking(self, method: str, path: str) -> Hold | None:
        """The hold at which this call must stop, if any."""
        return self.hold if self.hold is not None and self.hold.takes(method, path) else None


class WireLog:
    """ASGI middleware that appends to a file; the line is there before the client has the whole response."""

    def __init__(self, app: ASGIApp, path: Path, holds: Breakpoints) -> None:
        self._app = app
        self._file = LogFile(path)
        self._holds = holds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and log it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with record_checks() as checks:
            await self._serve_and_log(scope, receive, send, checks)

    async def _serve_and_log(self, scope: Scope, receive: Receive, send: Send, checks: Checks) -> None:
        began, status, noted = time.time(), 0, False
        hold = self._holds.taking(scope["method"], scope["path"])

        def note() -> None:
            nonlocal noted
            line = {
                "time": round(began, 6),
                "method": scope["method"],
                "path": scope["path"],
                "query": logged_query(scope["query_string"]),
                "status": status,
                "ms": round((time.time() - began) * 1000, 3),
                "caller": checks.caller,
                "granted": checks.of(granted=True),
                "denied": checks.of(granted=False),
            }
            self._file.write(json.dumps(line) + "\n")
            noted = True

        async def noting_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if hold is not None and hold.when == "after":
                    await hold.stop()
            elif not message.get("more_body") and not noted:
                note()
            await send(message)

        try:
            if hold is not None and hold.when == "before":
                # Read first: the body would be lost if its client were killed meanwhile.
                receive = await _buffer_body(receive)
                await hold.stop()
                if hold.dropped:
                    return
            await self._app(scope, receive, noting_send)
        finally:
            if not noted:
                note()


async def _buffer_body(receive: Receive) -> Receive:
    """Read the whole request body and return a `receive` that replays it."""
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    rest = iter(messages)

    async def again() -> Message:
        return next(rest, None) or await receive()

    return again


def logged_query(raw: bytes) -> str:
    """A query as the log has it: without the values of credentials, and escaped where it must be."""
    if _PLAIN_QUERY.fullmatch(raw):  # is the same when it was read and written again
        text = raw.decode()
        if not any(is_credential_parameter(pair.partition("=")[0]) for pair in text.split("&")):
            return text
    pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    return urlencode([(key, "-" if is_credential_parameter(key) else value) for key, value in pairs])
