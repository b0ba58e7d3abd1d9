"""Identity of a registry's callers: the token challenge, `/v2/token`, and what an Authorization header says.

As Artifact Registry does: `oauth2accesstoken` with an access token, `_json_key` or `_json_key_base64` with a key file,
or a token as a bearer. The token endpoint returns an access token; without credentials, an anonymous one.
"""

import base64
import binascii

from cryptography.exceptions import UnsupportedAlgorithm
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bezel_base.json_documents import read_encodable_json
from bezel_localcloud.access.credentials import keys
from bezel_localcloud.access.credentials.keys import TokenError
from bezel_localcloud.access.credentials.tokens import LIFETIME
from bezel_localcloud.core.json_types import timestamp
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.artifact_registry.errors import VERSION, RegistryError

_ANONYMOUS = "anonymous"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TOKEN_USERS = frozenset({"oauth2accesstoken", "_dcgcloud_token", "_token"})


def is_anonymous(request: Request) -> bool:
    """Whether a request has no credentials at all."""
    return not request.headers.get("authorization")


def caller_of(cloud: Context, request: Request) -> str | None:
    """E-mail of the account that sent a request; None for an unauthenticated one.

    Raises:
        RegistryError: UNAUTHORIZED, the credentials are not valid.
    """
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    value = value.strip()
    if not scheme or (scheme.lower() == "bearer" and value == _ANONYMOUS):
        return None
    try:
        return _basic(cloud, value) if scheme.lower() == "basic" else cloud.tokens.caller(value)
    except (TokenError, ValueError):
        raise RegistryError("UNAUTHORIZED", "authentication failed", headers=challenge(request)) from None


def challenge(request: Request, scope: str = "") -> dict[str, str]:
    """The header that names the token endpoint; the service and the scope are named where there is a scope."""
    host = request.headers.get("host", "")
    value = f'Bearer realm="{request.url.scheme}://{host}/v2/token"'
    return {"WWW-Authenticate": value + (f',service="{host}",scope="{scope}"' if scope else "")}


def token(cloud: Context, request: Request) -> Response:
    """The response of `/v2/token`."""
    caller = caller_of(cloud, request)
    value = _ANONYMOUS if caller is None else cloud.tokens.access_token(caller, _SCOPE)[0]
    issued = timestamp(cloud.pace.now())
    body = {"token": value, "access_token": value, "expires_in": int(LIFETIME), "issued_at": issued}
    return JSONResponse(body, headers=VERSION)


def _basic(cloud: Context, value: str) -> str:
    """Account of a user name and password.

    Raises:
        TokenError: They are not valid.
        ValueError: They cannot be decoded.
    """
    try:
        user, _, password = base64.b64decode(value + "=" * (-len(value) % 4)).decode().partition(":")
        if user == "_json_key_base64":
            password = base64.b64decode(password).decode()
    except binascii.Error:
        raise TokenError("not base64") from None
    if user in _TOKEN_USERS:
        return cloud.tokens.caller(password)
    if user in {"_json_key", "_json_key_base64"}:
        return _key_file(cloud, password)
    raise TokenError("of an unknown user")


def _key_file(cloud: Context, text: str) -> str:
    """Account of a key file, if its private key is one of the account's."""
    content = read_encodable_json(text)
    if not isinstance(content, dict):
        raise TokenError("not a key file")
    email = str(content.get("client_email", ""))
    try:
        private = keys.load_private(str(content.get("private_key", "")))
    except (TypeError, UnsupportedAlgorithm):  # an encrypted key, or one of another kind
        raise TokenError("not a private key") from None
    stored = cloud.store.get("key", f"{email}/{keys.key_id(private)}") or {}
    account = cloud.store.get("account", email) or {"disabled": True}
    if stored.get("publicKeyPem") != keys.public_pem(private) or account.get("disabled"):
        raise TokenError("not a key of an account")
    return email
