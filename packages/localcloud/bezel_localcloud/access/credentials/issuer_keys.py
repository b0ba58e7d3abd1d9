"""Public keys of outside issuers: those in a provider's settings, or those that the issuer publishes.

An issuer is asked at most every few minutes, and once more for a token that names an unknown key. localcloud asks only
issuers on this machine: for any other the provider needs `oidc.jwksJson`.
"""

import json
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from bezel_base.loopback.plain_http import NO_TLS
from bezel_localcloud.access.credentials.subject_tokens import ExchangeError
from bezel_localcloud.core.clock import PlatformClock
from bezel_localcloud.core.json_types import Json

KEPT_SECONDS = 300.0
_DEADLINE_SECONDS = 5.0
_LARGEST_DOCUMENT = 1 << 20  # bytes


def is_loopback(url: str) -> bool:
    """Whether an address is one of this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class IssuerKeys:
    """The keys of each issuer that was asked, with the time of the answer."""

    def __init__(self, pace: PlatformClock) -> None:
        self._pace = pace
        self._kept: dict[str, tuple[float, list[Json]]] = {}

    async def of(self, oidc: Json, *, renew: bool = False) -> list[Json]:
        """Return the keys of a provider's issuer.

        Args:
            oidc: The provider's settings.
            renew: Ask the issuer again, whatever is kept.

        Raises:
            ExchangeError: It cannot be asked, or does not answer in time.
        """
        if uploaded := oidc.get("jwksJson"):
            return list(json.loads(uploaded)["keys"])
        issuer = str(oidc["issuerUri"])
        asked, keys = self._kept.get(issuer, (0.0, []))
        if renew or not 0 <= self._pace.now() - asked < KEPT_SECONDS:
            keys = await _fetch_keys(issuer)
            self._kept[issuer] = (self._pace.now(), keys)
        return keys


async def _fetch_keys(issuer: str) -> list[Json]:
    # Imported late: most clouds never exchange a token.
    import asyncio

    import httpx

    try:
        async with asyncio.timeout(_DEADLINE_SECONDS), httpx.AsyncClient(trust_env=False, verify=NO_TLS) as client:
            configuration = await _document(client, f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            keys = (await _document(client, str(configuration["jwks_uri"])))["keys"]
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError, LookupError, TypeError):
        # Google's text
        raise ExchangeError("invalid_grant", "Error connecting to the given credential's issuer.") from None
    return [key for key in keys if isinstance(key, dict)]


async def _document(client: Any, url: str) -> Any:
    if not is_loopback(url):
        raise ValueError(url)
    answer = (await client.get(url)).raise_for_status()
    if len(answer.content) > _LARGEST_DOCUMENT:
        raise ValueError(url)
    return answer.json()
