"""Token endpoint and the issuer's public keys.

It takes an assertion that an account signed, as Google's does, and the subject token of localcloud's own credential
file of the type external_account, which at Google STS takes (sts.py).
"""

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bezel_localcloud.access.credentials import external_account
from bezel_localcloud.access.credentials.keys import TokenError
from bezel_localcloud.access.credentials.tokens import LIFETIME
from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.http.request_bodies import unpack_body
from bezel_localcloud.routing.context import Context

_LARGEST = 64 << 10  # bytes of a request
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def routes(cloud: Context) -> list[Route]:
    """Routes that require no token, since clients get their tokens here."""

    async def token(request: Request) -> JSONResponse:
        try:
            form = parse_qs((await unpack_body(request, _LARGEST).body()).decode("latin-1"))
        except ApiError as error:
            return _refusal("invalid_request", error.message)
        if form.get("grant_type") == [external_account.GRANT]:
            return _exchange_token(cloud, form)
        if form.get("grant_type") != [_GRANT] or "assertion" not in form:
            return _refusal("unsupported_grant_type", f"Invalid grant_type: only {_GRANT} is served here")
        try:
            email, claims = cloud.tokens.verify_assertion(form["assertion"][0], f"{cloud.base}/token")
        except TokenError as error:
            return _refusal("invalid_grant", f"Invalid JWT: {error}")
        if audience := claims.get("target_audience"):
            return JSONResponse({"id_token": cloud.tokens.identity_token(email, str(audience))})
        access, _ = cloud.tokens.access_token(email, str(claims.get("scope", "")))
        return JSONResponse({"access_token": access, "expires_in": int(LIFETIME) - 1, "token_type": "Bearer"})

    async def jwks(_: Request) -> JSONResponse:
        return JSONResponse(cloud.tokens.jwks())

    async def certificates(_: Request) -> JSONResponse:
        return JSONResponse(cloud.tokens.pem_certificates())

    return [
        Route("/token", token, methods=["POST"]),
        Route("/oauth2/v3/certs", jwks, methods=["GET"]),
        Route("/oauth2/v1/certs", certificates, methods=["GET"]),
    ]


def _exchange_token(cloud: Context, form: dict[str, list[str]]) -> JSONResponse:
    if form.get("audience") != [external_account.AUDIENCE]:
        return _refusal("invalid_target", "Invalid audience: an outside identity's token is exchanged at /sts/v1/token")
    try:
        email = cloud.tokens.account_of_subject_token(form.get("subject_token", [""])[0])
    except TokenError as error:
        return _refusal("invalid_grant", f"Invalid JWT: {error}")
    access, _ = cloud.tokens.access_token(email, form.get("scope", [""])[0])
    kinds = {"issued_token_type": external_account.ACCESS_TOKEN, "token_type": "Bearer"}
    return JSONResponse({"access_token": access, "expires_in": int(LIFETIME) - 1} | kinds)


def _refusal(error: str, description: str) -> JSONResponse:
    return JSONResponse({"error": error, "error_description": description}, 400)
