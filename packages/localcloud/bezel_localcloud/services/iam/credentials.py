"""IAM Credentials v1: short-lived tokens for another service account."""

from bezel_localcloud.access.credentials.tokens import LIFETIME
from bezel_localcloud.core.errors import ApiError, invalid, unserved_error
from bezel_localcloud.core.json_types import Json, seconds_of, whole_seconds
from bezel_localcloud.routing.router import Api, Call

api = Api("iamcredentials.googleapis.com", "IAM Service Account Credentials API")
_ONE = "/iamcredentials/v1/projects/{project:id}/serviceAccounts/{account:id}"
_NAME = "projects/{project}/serviceAccounts/{account}"


@api.route("POST", _ONE + ":generateAccessToken", needs="iam.serviceAccounts.getAccessToken", on=_NAME)
def generate_access_token(call: Call) -> Json:
    """An access token of the account, for an hour at most."""
    body = call.body
    _check_delegates(body)
    scope = body.get("scope") or []
    if not scope:
        raise invalid("Request contains an invalid argument.", ("scope", "at least one scope is required"))
    try:
        lifetime = seconds_of(body.get("lifetime"), LIFETIME)
    except ValueError as error:
        raise invalid(str(error), ("lifetime", str(error))) from None
    if not 0 < lifetime <= LIFETIME:
        raise invalid("The lifetime must be between 1 and 3600 seconds.", ("lifetime", f"{lifetime:g}s"))
    token, expires = call.cloud.tokens.access_token(_email(call), " ".join(scope), lifetime)
    return {"accessToken": token, "expireTime": whole_seconds(expires)}


@api.route("POST", _ONE + ":generateIdToken", needs="iam.serviceAccounts.getOpenIdToken", on=_NAME)
def generate_identity_token(call: Call) -> Json:
    """An identity token of the account for an audience."""
    _check_delegates(call.body)
    audience = call.body.get("audience")
    if not audience:
        raise invalid("Request contains an invalid argument.", ("audience", "is required"))
    return {"token": call.cloud.tokens.identity_token(_email(call), str(audience))}


def _check_delegates(body: Json) -> None:
    if body.get("delegates"):
        raise unserved_error("a chain of delegates", "leave 'delegates' out")


def _email(call: Call) -> str:
    account = call.cloud.store.get("account", call.param("account"))
    if account is None or account.get("disabled"):
        raise ApiError("NOT_FOUND", f"Unknown service account: {call.param('account')}")
    return str(account["email"])
