"""Routes of the XML API: `/BUCKET/OBJECT` where no other API has the path, and hosts `BUCKET.storage.localhost`.

A request is one of the account of its token or of its signature, else one of `allUsers`; the address of a resumable
session is a credential of its own. Leaves out what a request does (the modules beside this one).
"""

import inspect
import logging
import re
from collections.abc import Awaitable, Callable
from functools import cache
from urllib.parse import unquote, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from bezel_localcloud.core.errors import ApiError, service_disabled, unserved_error
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.core.store import is_full, storage_full
from bezel_localcloud.http.api_request import ApiRequest
from bezel_localcloud.http.methods import api_prefixes
from bezel_localcloud.routing.context import Context
from bezel_localcloud.routing.router import Call, caller_of, check_text
from bezel_localcloud.services.storage.api import POLICY, api, bucket_of
from bezel_localcloud.services.storage.xml import buckets, forms, lists, multipart, objects
from bezel_localcloud.services.storage.xml.documents import XmlError, refusal
from bezel_localcloud.services.storage.xml.signatures import Signed, is_signed, signer

_HOSTS = (".storage.localhost", ".storage.googleapis.com")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9_.-]{1,220}[a-z0-9]")
# Paths of this server that no table of Google's methods lists.
_OWN = frozenset(
    {"localcloud", "huggingface", "token", "batch", "download", "upload", "resumable", "oauth2", "robot"}
    | {"computeMetadata"}
)
_UNSERVED = frozenset(
    {"acl", "billing", "cors", "defaultObjectAcl", "delete", "encryption", "encryptionConfig", "lifecycle", "logging",
     "notification", "policy", "publicAccessBlock", "retention", "tagging", "torrent", "website"}
)  # fmt: skip
# Amazon's names of headers that change what a request does. Ignored, a copy would be an empty object.
_AMAZON = ("x-amz-acl", "x-amz-copy-source", "x-amz-grant-", "x-amz-meta-", "x-amz-server-side-", "x-amz-storage-class")
Handler = Callable[[Call], Response | Awaitable[Response]]

log = logging.getLogger(__name__)


def bucket_path(path: str) -> bool:
    """Whether a path can be one of the XML API: its first segment is a bucket's name and no API's."""
    first = path.split("/", 2)[1] if path.startswith("/") else ""
    return _BUCKET.fullmatch(first) is not None and first not in _taken_names()


@cache
def _taken_names() -> frozenset[str]:
    return _OWN | api_prefixes()


class XmlRoute(BaseRoute):
    """One place of the XML API in the order of all routes: buckets of the host, or of the path."""

    def __init__(self, cloud: Context, *, by_host: bool) -> None:
        self._cloud = cloud
        self._by_host = by_host

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the requests to a bucket's host; or those to a bucket's path, where no other route matched."""
        if scope["type"] != "http":
            return Match.NONE, {}
        bucket = _host_bucket(scope)
        if self._by_host:
            return (Match.FULL, {"xml_bucket": bucket}) if bucket else (Match.NONE, {})
        path = scope["path"]
        first = path.split("/", 2)[1] if path.startswith("/") else ""
        # A bucket may have the name of an API: what that API does not serve is the bucket's.
        fits = path == "/" or bucket_path(path) or (_BUCKET.fullmatch(first) and self._cloud.store.get("bucket", first))
        return (Match.FULL, {"xml_bucket": ""}) if fits else (Match.NONE, {})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        raw = scope["raw_path"].decode("latin-1").removeprefix("/")
        bucket, key = (
            (scope["xml_bucket"], raw) if scope["xml_bucket"] else (raw.partition("/")[0], raw.partition("/")[2])
        )
        names = {"bucket": unquote(bucket, errors="surrogateescape"), "object": unquote(key, errors="surrogateescape")}
        request = ApiRequest({**scope, "path_params": names}, receive)
        response = await _answer(self._cloud, request)
        await response(scope, receive, send)


async def _answer(cloud: Context, request: Request) -> Response:
    try:
        check_text("".join(request.path_params.values()))
        _check_enabled(cloud)
        caller = _caller(cloud, request)
        call = Call(cloud, request, caller, objects.conditions_of(request.headers))
        query = request.query_params
        call.arguments |= {"generation": query["generation"]} if query.get("generation") else {}
        answer = _handler(call)(call)
        return await answer if inspect.isawaitable(answer) else answer
    except XmlError as error:
        return error.response()
    except ApiError as error:
        return refusal(error, anonymous="authorization" not in request.headers)
    except Exception as error:
        log.exception("%s %s failed", request.method, request.url.path)
        return refusal(storage_full(cloud.layout.root) if is_full(error) else ApiError("INTERNAL", "Internal error."))


def _check_enabled(cloud: Context) -> None:
    if not cloud.is_enabled(api.service):
        raise service_disabled(api.service, api.title, PROJECT)


def _handler(call: Call) -> Handler:
    """The function that answers a request.

    Raises:
        XmlError: There is none.
        ApiError: Google has one that localcloud does not serve.
    """
    method, query, headers = call.request.method, call.request.query_params, call.request.headers
    name, bucket = call.param("object"), call.param("bucket")
    if named := sorted(_UNSERVED & query.keys()):
        raise unserved_error(f"{method} ?{named[0]} of Cloud Storage's XML API")
    if named := sorted(name for name in headers if name.startswith(_AMAZON)):
        raise unserved_error(f"the header {named[0]}", "use Cloud Storage's own, which begins with x-goog-")
    handlers: dict[str, Handler]
    if not bucket:
        handlers = {"GET": lists.list_buckets}
    elif not name:
        handlers = _of_bucket(call)
    elif "uploadId" in query:
        put, post = multipart.receive_part, multipart.complete
        handlers = {"GET": multipart.list_parts, "PUT": put, "POST": post, "DELETE": multipart.abort}
    else:
        handlers = {"GET": objects.read, "HEAD": objects.read, "PUT": objects.write, "DELETE": objects.delete}
        if "uploads" in query:
            handlers["POST"] = lambda call: multipart.initiate(call, objects.fields_of(headers))
        elif headers.get("x-goog-resumable") == "start":
            handlers["POST"] = objects.begin
        elif "upload_id" in query:
            handlers["POST"] = objects.write
    if method not in handlers:
        text = "The specified method is not allowed against this resource."
        raise XmlError(405, "MethodNotAllowed", text)
    return handlers[method]


def _of_bucket(call: Call) -> dict[str, Handler]:
    query = call.request.query_params
    if "uploads" in query:
        return {"GET": multipart.list_uploads}
    if "location" in query or "versioning" in query or "storageClass" in query:
        return {"GET": buckets.read_setting, "PUT": buckets.write_setting}
    return {
        "GET": lists.list_objects,
        "HEAD": _head,
        "PUT": buckets.create,
        "DELETE": buckets.delete,
        "POST": forms.upload,
    }


def _head(call: Call) -> Response:
    call.require("storage.buckets.get", call.name(POLICY))
    bucket_of(call)
    return Response(media_type="application/xml; charset=UTF-8")


def _caller(cloud: Context, request: Request) -> str:
    """The e-mail of the account that sends a request, "" for none.

    Raises:
        ApiError: Its token is not valid, or it uses an HMAC key.
        XmlError: Its signature is not valid.
    """
    authorization, query = request.headers.get("authorization"), request.query_params
    if "upload_id" in query:
        return ""
    if authorization is not None and not authorization.lower().startswith("bearer "):
        raise unserved_error("HMAC keys (storage.projects.hmacKeys.create)", "use a token or a signed URL")
    if authorization is not None:
        return caller_of(cloud, authorization, api.service)
    if not is_signed(query):
        return ""
    path, text = request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode("latin-1")
    signed = Signed(request.method, path, text, request.headers)
    return signer(signed, cloud.store, cloud.pace.now(), request.scope["xml_bucket"])


def _host_bucket(scope: Scope) -> str:
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host" and b".storage." in value]
    name = (urlsplit(f"//{hosts[0]}").hostname or "") if hosts else ""
    return next((name.removesuffix(suffix) for suffix in _HOSTS if name.endswith(suffix) and name != suffix), "")
