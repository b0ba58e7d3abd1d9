"""Access and identity tokens: minting by localcloud's own issuer, and verification, also of JWTs that accounts sign.

Tokens are signed, not stored: they outlive a restart of the daemon, as Google's outlive a server.
"""

from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric import rsa

from bezel_localcloud.access.checks import note_caller
from bezel_localcloud.access.credentials import external_account, keys
from bezel_localcloud.access.credentials.keys import TokenError
from bezel_localcloud.access.principals import POOL, FederatedPrincipal
from bezel_localcloud.core.clock import PlatformClock
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.store import Store

GOOGLE_TOKEN_URI = "https://oauth2.googleapis.com/token"  # noqa: S105 -- an address
LIFETIME = 3600.0
_ACCESS_AUDIENCE = "localcloud:access"


class Tokens:
    """Mints and verifies tokens for service accounts that exist."""

    def __init__(self, key: rsa.RSAPrivateKey, store: Store, pace: PlatformClock, issuer: Callable[[], str]) -> None:
        self._key = key
        self._key_id, self._public = keys.key_id(key), keys.public_pem(key)
        self._store = store
        self._pace = pace
        self._issuer = issuer

    def jwks(self) -> Json:
        """Public keys as JSON Web Keys."""
        return {"keys": [keys.jwk(self._key)]}

    def pem_certificates(self) -> Json:
        """Public keys by their ids, in PEM."""
        return {keys.key_id(self._key): self._public}

    def access_token(self, email: str, scope: str, lifetime: float = LIFETIME) -> tuple[str, float]:
        """(token, Unix seconds of its expiry) for calls to the APIs."""
        now = self._pace.now()
        claims = {"aud": _ACCESS_AUDIENCE, "email": email, "scope": scope, "iat": int(now), "exp": now + lifetime}
        return keys.sign(claims, self._key), now + lifetime

    def federated_token(self, principal: FederatedPrincipal, scope: str, lifetime: float) -> str:
        """A token of an outside identity for calls to the APIs."""
        now = self._pace.now()
        who = {"principal": str(principal), "sets": principal.paths}
        return keys.sign(
            {"aud": _ACCESS_AUDIENCE, "scope": scope, "iat": int(now), "exp": now + lifetime} | who, self._key
        )

    def identity_token(self, email: str, audience: str) -> str:
        """A token that proves an account to one audience, for an hour."""
        now = int(self._pace.now())
        account = self._store.get("account", email) or {}
        claims = {
            "iss": self._issuer(),
            "aud": audience,
            "azp": account.get("uniqueId", email),
            "sub": account.get("uniqueId", email),
            "email": email,
            "email_verified": True,
            "iat": now,
            "exp": now + int(LIFETIME),
        }
        return keys.sign(claims, self._key)

    def caller(self, token: str, service: str = "") -> str:
        """The account or principal of an access token, or the account of a JWT that it signed itself to call a service.

        Args:
            token: The token.
            service: Name of the called API, such as "run.googleapis.com"; "" where only access tokens are accepted.

        Raises:
            TokenError: If it is neither, or of no existing account.
        """
        principal = self._caller(token, service)
        note_caller(principal)
        return principal

    def _caller(self, token: str, service: str) -> str:
        header, claims = keys.header_and_claims(token)
        if service and header.get("kid") != self._key_id:
            return self.signed_for(token, service)
        claims = keys.verify(token, self._public, now=self._pace.now())
        # Only identity tokens name an issuer; their audience is any text that the caller requested.
        if claims.get("aud") != _ACCESS_AUDIENCE or "iss" in claims:
            raise TokenError("not an access token")
        if principal := claims.get("principal"):
            return self._active_principal(FederatedPrincipal.with_sets(str(principal), claims.get("sets", [])))
        return self._living(str(claims.get("email", "")))

    def _active_principal(self, principal: FederatedPrincipal) -> FederatedPrincipal:
        pool = self._store.get(POOL, principal.pool)
        if pool is None or pool["state"] != "ACTIVE" or pool.get("disabled"):
            raise TokenError("of a pool that does not exist or is disabled")
        return principal

    def signed_for(self, token: str, service: str) -> str:
        """The account of a JWT that it signed itself, in place of an access token (google.aip.dev/auth/4111).

        Such a token has the service's address as its audience, or it has a scope and no audience.

        Raises:
            TokenError: If signature, times, account or audience are wrong.
        """
        email, claims = self._signed_by_account(token)
        if claims.get("sub") != email:
            raise TokenError("issued by one account for another")
        audience = str(claims.get("aud", ""))
        addresses = {f"https://{service}", self._issuer()}
        if audience.removesuffix("/") not in addresses and (audience or not claims.get("scope")):
            raise TokenError("for another audience")
        return self._living(email)

    def identity(self, token: str, audiences: set[str]) -> str:
        """The account of an identity token for one of some audiences.

        Raises:
            TokenError: If it is no valid identity token for them.
        """
        claims = keys.verify(token, self._public, now=self._pace.now())
        if claims.get("aud") not in audiences:
            raise TokenError("for another audience")
        if claims.get("iss") != self._issuer():
            raise TokenError("of another issuer")
        return self._living(str(claims.get("email", "")))

    def verify_assertion(self, assertion: str, token_uri: str) -> tuple[str, Json]:
        """Return (account, claims) of a JWT that an account signed with a key of its key file.

        Raises:
            TokenError: If signature, times, issuer or audience are wrong.
        """
        email, claims = self._signed_by_account(assertion)
        # google-auth uses Google's own endpoint as the audience, regardless of the key file's token_uri.
        if claims.get("aud") not in {token_uri, GOOGLE_TOKEN_URI}:
            raise TokenError("for another audience")
        return email, claims

    def account_of_subject_token(self, subject_token: str) -> str:
        """The account of a subject token of localcloud's credential file of the type external_account.

        Raises:
            TokenError: If signature, times, issuer or audience are wrong.
        """
        email, claims = self._verify_signature(subject_token)
        if claims.get("aud") != external_account.AUDIENCE:
            raise TokenError("for another audience")
        return self._living(email)

    def _signed_by_account(self, token: str) -> tuple[str, Json]:
        email, claims = self._verify_signature(token)
        if float(claims["exp"]) - float(claims.get("iat", 0)) > LIFETIME + 300:
            raise TokenError("valid for more than an hour")
        return email, claims

    def _verify_signature(self, token: str) -> tuple[str, Json]:
        header, claims = keys.header_and_claims(token)
        email = str(claims.get("iss", ""))
        key = self._store.get("key", f"{email}/{header.get('kid', '')}")
        if key is None or key.get("disabled") or self._store.get("account", email) is None:
            raise TokenError("signed by a key that no account has")
        return email, keys.verify(token, key["publicKeyPem"], now=self._pace.now())

    def _living(self, email: str) -> str:
        account = self._store.get("account", email)
        if account is None or account.get("disabled"):
            raise TokenError("of an account that does not exist or is disabled")
        return str(account["email"])
