"""Requests without credentials, as clients send them to an emulator: made with an access token of the deployer.

Google's storage libraries leave their credentials out where `STORAGE_EMULATOR_HOST` is set. Leaves out which port is
served so (`bezel.localcloud.daemon`); at every other port a request without credentials is anonymous.
"""

import time
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

_SIGNED = (b"X-Goog-Signature=", b"Signature=", b"access_token=")  # credentials within a URL
_SPARE = 300.0  # seconds before its expiry at which a token is replaced


class EmulatorMiddleware:
    """An application that gets a token with each request that has no credentials."""

    def __init__(self, app: ASGIApp, token: Callable[[], tuple[str, float]]) -> None:
        """Wrap an application.

        Args:
            app: The wrapped application.
            token: Returns a token, and the Unix seconds of its expiry.
        """
        self._app, self._new_token = app, token
        self._token, self._expiry = "", 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with a token if it has none."""
        if scope["type"] == "http" and not _has_credentials(scope):
            if time.time() > self._expiry - _SPARE:
                self._token, self._expiry = self._new_token()
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {self._token}".encode())]}
        await self._app(scope, receive, send)


def _has_credentials(scope: Scope) -> bool:
    if any(name == b"authorization" for name, _ in scope["headers"]):
        return True
    return any(part.startswith(_SIGNED) for part in scope["query_string"].split(b"&"))
