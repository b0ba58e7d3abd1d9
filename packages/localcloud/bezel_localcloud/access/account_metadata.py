"""Service account routes of the metadata servers: tokens, e-mail, and the refusal of foreign requests.

The responses are those of Compute Engine's metadata server, which Cloud Run's has too (docs: container contract).
Leaves out what else a server reports about its own machine or task.
"""

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from bezel_localcloud.access.credentials.tokens import LIFETIME, Tokens
from bezel_localcloud.core.store import Store

ROOT = "/computeMetadata/v1"
ACCOUNTS = "instance/service-accounts/"
HEADERS = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


def answer_of_account(path: str, request: Request, email: str, store: Store, tokens: Tokens) -> Response:
    """The response to a path below `ACCOUNTS`: `default/WHAT`, or the e-mail in place of `default`."""
    account = store.get("account", email)
    name, _, what = path.partition("/")
    if account is None or account.get("disabled") or name not in {"default", email}:
        return text(None)
    if what == "token":
        token, _ = tokens.access_token(email, _SCOPE)
        answer = {"access_token": token, "expires_in": int(LIFETIME) - 1, "token_type": "Bearer"}
        return JSONResponse(answer, headers=HEADERS)
    if what == "identity":
        audience = request.query_params.get("audience")
        if not audience:
            return text("non-empty audience parameter required", 400)
        return text(tokens.identity_token(email, audience))
    if not what and request.query_params.get("recursive", "").lower() == "true":
        return JSONResponse({"aliases": ["default"], "email": email, "scopes": [_SCOPE]}, headers=HEADERS)
    return text({"email": email, "scopes": f"{_SCOPE}\n"}.get(what))


def stranger(request: Request) -> Response | None:
    """The refusal of a request that a browser or a proxy might have sent, or None."""
    if request.headers.get("metadata-flavor") != "Google" or "x-forwarded-for" in request.headers:
        return text("Missing Metadata-Flavor:Google header.", 403)
    return None


def text(content: str | None, status: int = 200) -> Response:
    """A response in plain text; None is a 404."""
    return PlainTextResponse(content or "", 404 if content is None else status, headers=HEADERS)
