"""Tokens of the metadata server, by which the door proves its identity: to Google's interfaces and to the server.

Blocking, with the standard library: called in threads. Source: Google's page "Authenticating service-to-service" and
the metadata server's own paths (November 2026).
"""

import base64
import http.client
import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

_HOST: Final = "169.254.169.254"  # metadata.google.internal
_ACCOUNT: Final = "/computeMetadata/v1/instance/service-accounts/default"
_SECONDS: Final = 5.0
_ASSUMED_LIFE: Final = 1800.0


class GoogleError(Exception):
    """A call of Google's interfaces that failed; the text is the reason and holds no token."""


class Metadata:
    """The metadata server of this container."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._host = environ.get("GCE_METADATA_HOST") or _HOST

    def access_token(self) -> tuple[str, float]:
        """A token for Google's interfaces, and the seconds for which it is valid.

        Raises:
            GoogleError: There is none.
        """
        try:
            answer = json.loads(self._get(f"{_ACCOUNT}/token"))
            return str(answer["access_token"]), float(answer["expires_in"])
        except (ValueError, KeyError, TypeError):
            raise GoogleError("the metadata server answered without a token") from None

    def identity_token(self, audience: str, now: float) -> tuple[str, float]:
        """An identity token, and the seconds for which it is valid.

        Raises:
            GoogleError: There is none.
        """
        token = self._get(f"{_ACCOUNT}/identity?audience={quote(audience, safe='')}&format=full").decode().strip()
        return token, (_end_of(token) or now + _ASSUMED_LIFE) - now

    def _get(self, target: str) -> bytes:
        connection = http.client.HTTPConnection(self._host, timeout=_SECONDS)
        try:
            connection.request("GET", target, headers={"Metadata-Flavor": "Google"})
            response = connection.getresponse()
            content = response.read(65536)
        except (OSError, http.client.HTTPException) as error:
            raise GoogleError(f"the metadata server does not answer: {type(error).__name__}") from None
        finally:
            connection.close()
        if response.status != 200:
            raise GoogleError(f"the metadata server answered HTTP {response.status}")
        return content


def _end_of(token: str) -> float | None:
    """The end that a token states, in seconds since 1970."""
    try:
        claims = token.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
    except (ValueError, KeyError, IndexError, TypeError):
        return None
