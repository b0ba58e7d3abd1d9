"""Requests as clients send them to an emulator of Cloud Storage: without credentials, and some at short paths.

Google's storage libraries leave their credentials out where `STORAGE_EMULATOR_HOST` is set: such a request gets an
access token of the deployer. That for Node.js takes the variable for the address of the JSON API itself, so that it
calls `/b/...` in place of `/storage/v1/b/...`. Leaves out which port is served so (`bezel_localcloud.daemon`); at every
other port a request without credentials is anonymous, and these paths are those of the XML API.
"""

import re
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

_SIGNED = (b"X-Goog-Signature=", b"Signature=", b"access_token=")  # credentials within a URL
# Paths of the JSON API without their beginning. No bucket has so short a name, so that "/b" is none of the XML API; a
# bucket named "projects" keeps all paths but those of the two methods.
_SHORT = re.compile(rb"/b(?:/.*)?|/projects/[^/]+/(?:serviceAccount|hmacKeys(?:/.*)?)")
_JSON_API = "/storage/v1"
_SPARE = 300.0  # seconds before its expiry at which a token is replaced


class EmulatorMiddleware:
    """An application that gets each request at the JSON API's whole path, and with a token if it has no credentials."""

    def __init__(self, app: ASGIApp, token: Callable[[], tuple[str, float]]) -> None:
        """Wrap an application.

        Args:
            app: The wrapped application.
            token: Returns a token, and the Unix seconds of its expiry.
        """
        self._app, self._new_token = app, token
        self._token, self._expiry = "", 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http":
            scope = self._with_credentials(_at_whole_path(scope))
        await self._app(scope, receive, send)

    def _with_credentials(self, scope: Scope) -> Scope:
        if not _has_credentials(scope):
            if time.time() > self._expiry - _SPARE:
                self._token, self._expiry = self._new_token()
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {self._token}".encode())]}
        return scope


def _at_whole_path(scope: Scope) -> Scope:
    raw: bytes = scope["raw_path"]
    if not _SHORT.fullmatch(raw):
        return scope
    return {**scope, "path": _JSON_API + scope["path"], "raw_path": _JSON_API.encode() + raw}


def _has_credentials(scope: Scope) -> bool:
    if any(name == b"authorization" for name, _ in scope["headers"]):
        return True
    return any(part.startswith(_SIGNED) for part in scope["query_string"].split(b"&"))
