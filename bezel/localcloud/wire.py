"""The log of the wire: one JSON line a request, without bodies, authorization or anything secret."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from bezel.localcloud.logfile import LogFile

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Arguments that are, or work like, credentials.
_SECRET_ARGUMENTS = frozenset({"access_token", "key", "upload_id", "assertion", "token"})


class WireLog:
    """ASGI middleware that appends to a file; whoever has the whole answer finds its line there."""

    def __init__(self, app: ASGIApp, path: Path) -> None:
        self._app = app
        self._file = LogFile(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, noted = time.time(), 0, False

        def note() -> None:
            nonlocal noted
            line = {
                "time": round(began, 6),
                "method": scope["method"],
                "path": scope["path"],
                "query": _query(scope["query_string"]),
                "status": status,
                "ms": round((time.time() - began) * 1000, 3),
            }
            self._file.write(json.dumps(line) + "\n")
            noted = True

        async def noting_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif not message.get("more_body") and not noted:
                note()
            await send(message)

        try:
            await self._app(scope, receive, noting_send)
        finally:
            if not noted:
                note()


def _query(raw: bytes) -> str:
    pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    return urlencode([(key, "-" if key in _SECRET_ARGUMENTS else value) for key, value in pairs])
