"""Forms in which any client may send a request to Google's front end, brought into the plain one. Pure but for ASGI.

- The method in `X-HTTP-Method-Override` of a POST (Java, .NET), or in `$httpMethod`.
- The query of such a GET as a form in the body, for addresses of more than 2,048 characters (Python, Java, .NET).
- The access token in the query: `access_token`, `oauth_token`.
- The selection of fields in `X-Goog-FieldMask`.

Source: cloud.google.com/apis/docs/system-parameters, and the transports that docs/localcloud.md names. Leaves out
packed bodies (request_bodies.py) and the parameters themselves (methods.py).
"""

import re
from urllib.parse import parse_qsl, quote, quote_plus

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.http.request_bodies import unpack_body

LONGEST_QUERY = 64 << 10
"""Bytes of a query that a body holds."""
_FORM = "application/x-www-form-urlencoded"
_TOKENS = ("access_token", "oauth_token")
_SELECTIONS = frozenset({"fields", "$fields"})
_METHOD = re.compile("[A-Z]{1,20}")
_OF_BODY = frozenset({b"content-type", b"content-encoding", b"content-length", b"transfer-encoding"})
_OVERRIDE = b"x-http-method-override"


class ClientForms:
    """ASGI middleware that passes each request on in its plain form."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http":
            try:
                scope, receive = await _with_method(scope, receive)
            except ApiError as error:
                await JSONResponse(error.body(), error.status)(scope, receive, send)
                return
            scope = _with_parameters(scope)
        await self._app(scope, receive, send)


async def _with_method(scope: Scope, receive: Receive) -> tuple[Scope, Receive]:
    """A POST with another method's name as that method; a form in the body of such a GET becomes its query."""
    if scope["method"] != "POST":
        return scope, receive
    headers = dict(scope["headers"])
    method_name = headers.get(_OVERRIDE, b"").decode("latin-1")
    if not method_name and (b"$" in scope["query_string"] or b"%" in scope["query_string"]):
        method_name = dict(_pairs(scope)).get("$httpMethod", "")
    verb = method_name.strip().upper()
    if not _METHOD.fullmatch(verb) or verb == "POST":
        return scope, receive
    rest = [(name, value) for name, value in scope["headers"] if name != _OVERRIDE]
    scope = {**scope, "method": verb, "headers": rest}
    form = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower() == _FORM
    if verb != "GET" or not form:
        return scope, receive
    body = await unpack_body(Request(scope, receive), LONGEST_QUERY).body()
    query = b"&".join(part for part in (scope["query_string"], _as_query(body)) if part)
    if len(query) > LONGEST_QUERY:
        raise ApiError("INVALID_ARGUMENT", f"The query exceeds the limit: {LONGEST_QUERY} bytes.", status=413)
    kept = [(name, value) for name, value in rest if name not in _OF_BODY]
    return {**scope, "headers": kept, "query_string": query}, _no_body


def _as_query(body: bytes) -> bytes:
    pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs).encode()


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def _with_parameters(scope: Scope) -> Scope:
    names = {name for name, _ in scope["headers"]}
    added, query = [], scope["query_string"]
    if b"authorization" not in names and b"_token=" in query:
        tokens = [value for name, value in _pairs(scope) if name in _TOKENS and value]
        added = [(b"authorization", f"Bearer {tokens[0]}".encode("latin-1", "replace"))] if tokens else []
    if b"x-goog-fieldmask" in names and not _SELECTIONS & dict(_pairs(scope)).keys():
        mask = dict(scope["headers"])[b"x-goog-fieldmask"].decode("latin-1")
        query = b"&".join(part for part in (query, f"%24fields={quote(mask, safe='')}".encode()) if part)
    if not added and query is scope["query_string"]:
        return scope
    return {**scope, "query_string": query, "headers": [*scope["headers"], *added]}


def _pairs(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
