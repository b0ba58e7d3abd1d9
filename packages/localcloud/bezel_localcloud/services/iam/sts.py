"""Security Token Service v1: exchange of an outside identity's token for a federated access token.

Owns the request's form and OAuth's form of errors. Leaves the checks of the token to
`bezel_localcloud.access.credentials.subject_tokens` and the issuers' keys to issuer_keys.py beside it. Clients
send a form (RFC 8693) or, as Google's document has it, JSON. Introspection and other token types are not served.
"""

import re
from urllib.parse import parse_qsl

from starlette.responses import JSONResponse, Response

from bezel_base.json_documents import read_encodable_json
from bezel_localcloud.access.credentials.subject_tokens import (
    ExchangeError,
    UnknownKeyError,
    check_issuer,
    claims_of,
    map_attributes,
    verify,
)
from bezel_localcloud.access.credentials.tokens import LIFETIME
from bezel_localcloud.access.principals import FederatedPrincipal
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.iam.pools_api import usable_provider

api = Api("sts.googleapis.com", "Security Token Service API", public=True)
_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
_TOKEN = "urn:ietf:params:oauth:token-type:"  # noqa: S105 -- a name
_SUBJECT_TOKENS = frozenset({_TOKEN + "jwt", _TOKEN + "id_token"})
_AUDIENCE = re.compile(
    r"//iam\.googleapis\.com/projects/(?P<project>[^/]+)/locations/global/workloadIdentityPools/(?P<pool>[^/]+)"
    r"/providers/(?P<provider>[^/]+)"
)
# Google's texts.
_BAD_AUDIENCE = (
    'Invalid value for "audience". This value should be the full resource name of the Identity Provider. See '
    "https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token for the list of possible formats."
)
_BAD_TARGET = (
    'The target service indicated by the "audience" parameters is invalid. This might either be because the pool or '
    "provider is disabled or deleted or because it doesn't exist."
)


@api.route("POST", "/sts/v1/token", reads_body=True)
async def token(call: Call) -> Response:
    """Exchange a token."""
    try:
        return JSONResponse(await _exchange_token(call, _request(await call.request.body())))
    except ExchangeError as error:
        return JSONResponse({"error": error.error, "error_description": str(error)}, 400)


def _request(raw: bytes) -> Json:
    """The request's fields by their names in OAuth."""
    try:
        text = raw.decode()
        if text.lstrip().startswith("{"):
            fields = read_encodable_json(text)
            return {re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name): str(fields[name]) for name in fields}
        return dict(parse_qsl(text))
    except ValueError:
        raise ExchangeError("invalid_request", "The request is neither a form nor a JSON object.") from None


async def _exchange_token(call: Call, request: Json) -> Json:
    cloud, now = call.cloud, call.cloud.pace.now()
    if request.get("grant_type") != _GRANT:
        raise ExchangeError("unsupported_grant_type", f"Invalid grant_type: only {_GRANT} is served here.")
    audience = _AUDIENCE.fullmatch(request.get("audience", ""))
    if audience is None:
        raise ExchangeError("invalid_request", _BAD_AUDIENCE)
    if request.get("requested_token_type") != _TOKEN + "access_token":
        raise ExchangeError("invalid_request", f'Invalid value for "requested_token_type": use {_TOKEN}access_token.')
    if request.get("subject_token_type") not in _SUBJECT_TOKENS:
        raise ExchangeError("invalid_request", f'Invalid value for "subject_token_type": use {_TOKEN}jwt.')
    if not request.get("scope"):
        raise ExchangeError("invalid_scope", "The scope is required: https://www.googleapis.com/auth/cloud-platform.")
    ours = audience["project"] in {PROJECT, PROJECT_NUMBER}
    provider = usable_provider(cloud.store, now, audience["pool"], audience["provider"]) if ours else None
    if provider is None:
        raise ExchangeError("invalid_target", _BAD_TARGET)
    subject = request.get("subject_token", "")
    claims = await _verify_subject(call, subject, provider)
    attributes = map_attributes(claims, provider["attributeMapping"], provider.get("attributeCondition", ""))
    principal = FederatedPrincipal.of(audience["pool"], attributes.subject, attributes.groups, attributes.custom)
    # It lives no longer than the token that it was given for.
    lifetime = min(LIFETIME, float(claims["exp"]) - now)
    access = cloud.tokens.federated_token(principal, request["scope"], lifetime)
    kind = _TOKEN + "access_token"
    return {"access_token": access, "issued_token_type": kind, "token_type": "Bearer", "expires_in": int(lifetime)}


async def _verify_subject(call: Call, subject: str, provider: Json) -> Json:
    oidc, now = provider["oidc"], call.cloud.pace.now()
    check_issuer(claims_of(subject)[1], oidc["issuerUri"])
    path = f"//iam.googleapis.com/{provider['name']}"
    audiences = oidc.get("allowedAudiences") or [f"https:{path}", path]
    try:
        return verify(subject, await call.cloud.issuers.of(oidc), audiences, now)
    except UnknownKeyError:
        return verify(subject, await call.cloud.issuers.of(oidc, renew=True), audiences, now)
