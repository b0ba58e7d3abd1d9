"""Router from requests to handlers: the caller's token, enabled APIs, permissions, and errors in Google's shape.

Every route but localcloud's own serves one method of Google's discovery documents; query and body are checked against
that method before the handler sees them.
"""

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bezel_localcloud.access.credentials.keys import TokenError
from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import (
    ApiError,
    NotServedError,
    anonymous_denied,
    invalid,
    permission_denied,
    service_disabled,
    unauthenticated_error,
)
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.core.store import is_full, storage_full
from bezel_localcloud.http.enums import with_numbers
from bezel_localcloud.http.messages import checked_message, json_object
from bezel_localcloud.http.methods import NUMBERS, Method, check_query, method_of, service_of
from bezel_localcloud.http.paging import Items, page_of
from bezel_localcloud.http.partial_response import select_fields
from bezel_localcloud.http.request_bodies import LARGEST_MESSAGE, LARGEST_OBJECT, unpack_body
from bezel_localcloud.routing.context import Context
from bezel_localcloud.routing.raw_routes import LateRoute, RawRoute

Answer = Json | Response
Handler = Callable[["Call"], Answer | Awaitable[Answer]]
H = TypeVar("H", bound=Handler)

_UPLOADS = ("/upload/", "/resumable/")

log = logging.getLogger(__name__)


class _Segment(Convertor[str]):
    """Path convertor for one segment, without the colon that begins a custom method."""

    regex = "[^/:]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", _Segment())


@dataclass
class Call:
    """One request to one handler.

    Attributes:
        cloud: The project's state.
        request: The HTTP request.
        caller: E-mail of the service account of its token; "" for a call without one, where the API allows it.
        arguments: The query: names in camelCase, values of the types in Google's method.
        body: The body as the method's message; {} where it has none or where the handler reads it itself.
    """

    cloud: Context
    request: Request
    caller: str
    arguments: dict[str, str] = field(default_factory=dict)
    body: Json = field(default_factory=dict)

    @property
    def base(self) -> str:
        """Address of the APIs as the client wrote it, `http://HOST:PORT`: links lead back to where they were read."""
        host = self.request.headers.get("host", "")
        return f"{self.request.scope['scheme']}://{host}" if host else self.cloud.base

    def param(self, name: str) -> str:
        """A part of the path."""
        value = str(self.request.path_params[name])
        return PROJECT if name == "project" else value

    def query(self, name: str, default: str = "") -> str:
        """A query argument by its name in camelCase."""
        return self.arguments.get(name, default)

    def flag(self, name: str) -> bool:
        """A boolean query argument."""
        return self.query(name) == "true"

    def number(self, name: str) -> int:
        """A numeric query argument of a localcloud route, 0 without it.

        Raises:
            ApiError: INVALID_ARGUMENT.
        """
        text = self.query(name) or "0"
        number = decimal(text)
        if number is None:
            raise invalid(f"Invalid value at '{name}' (TYPE_INT32), \"{text[:50]}\"", (name, "must be a number"))
        return number

    async def json(self) -> Json:
        """The body of a request to a localcloud route.

        Raises:
            ApiError: INVALID_ARGUMENT.
        """
        return json_object(await self.request.body())

    def mask(self) -> list[str]:
        """The paths of `updateMask`, in the order given."""
        return [path for path in self.query("updateMask").split(",") if path]

    def name(self, template: str) -> str:
        """A resource name from a template such as "projects/{project}/secrets/{secret}"."""
        return template.format_map({key: self.param(key) for key in self.request.path_params})

    def require(self, permission: str, resource: str) -> None:
        """Check that the caller has a permission on a resource.

        Raises:
            ApiError: PERMISSION_DENIED.
        """
        if not self.cloud.access.allows(self.caller or None, permission, resource):
            raise permission_denied(permission, resource) if self.caller else anonymous_denied(permission)

    def act_as(self, account: str, permission: str = "iam.serviceAccounts.actAs") -> None:
        """Check that a service account exists and that the caller may act as it.

        Args:
            account: Its e-mail.
            permission: The permission as the API's error spells it.

        Raises:
            ApiError: PERMISSION_DENIED.
        """
        name, allows = f"projects/{PROJECT}/serviceAccounts/{account}", self.cloud.access.allows
        exists = self.cloud.store.get("account", account) is not None
        if not exists or not allows(self.caller, "iam.serviceAccounts.actAs", name):
            raise permission_denied(permission, f"service account {account}")

    def row_of(self, kind: str, name: str, missing: str) -> Json:
        """Return the row of a resource.

        Raises:
            ApiError: NOT_FOUND with the text `missing`.
        """
        row = self.cloud.store.get(kind, name)
        if row is None:
            raise ApiError("NOT_FOUND", missing)
        return row

    def check_absent(self, kind: str, name: str, taken: str) -> None:
        """Check that no resource has a name.

        Raises:
            ApiError: ALREADY_EXISTS with the text `taken`.
        """
        if self.cloud.store.get(kind, name) is not None:
            raise ApiError("ALREADY_EXISTS", taken)

    def page(self, items: Items, key: str, *, default: int = 100, max_size: int = 1000) -> Json:
        """Return one page of (name, body): its bodies under `key`, and the token of the next page if there is one.

        Args:
            items: The whole list in the order of the names.
            key: Name of the list in the response.
            default: Items of a page if the caller sets no size.
            max_size: Items of a page at most; a larger size is reduced to it.

        Raises:
            ApiError: INVALID_ARGUMENT for a negative size and for a token of another list.
        """
        shown, token = self.page_items(items, default=default, max_size=max_size)
        page: Json = {key: [body for _, body in shown]} if shown else {}
        return page | ({"nextPageToken": token} if token else {})

    def page_in_order(self, bodies: list[Json], key: str, *, default: int = 100, max_size: int = 1000) -> Json:
        """As `page`, for a list whose order is not that of its names."""
        return self.page([(f"{n:09d}", body) for n, body in enumerate(bodies)], key, default=default, max_size=max_size)

    def page_items(self, items: Items, *, default: int, max_size: int) -> tuple[Items, str]:
        """As `page`, but return the items and the token of the next page ("" after the last one) to the handler."""
        size = int(self.query("pageSize") or self.query("maxResults") or 0)
        if size < 0:
            text = f"page_size {size} is negative: leave it out or give at most {max_size}."
            raise invalid(text, ("page_size", "< 0"))
        return page_of(items, min(size or default, max_size), self.query("pageToken"), self.request.url.path)


@dataclass(frozen=True)
class _Rule:
    method: str
    path: str
    needs: str
    on: str
    query: frozenset[str]
    field: str
    reads_body: bool
    serves: Method | None
    handler: Handler


@dataclass
class Api:
    """The handlers of one Google API.

    Attributes:
        service: Name in Service Usage; "" for an API that is always enabled.
        title: Name for people.
        legacy: Errors in the older shape of Cloud Storage and Compute Engine, and null in a body means "remove".
        locations: Locations of the API's resources, for those that have one.
        unserved_locations: Further ones that Google has, by what they are for.
        public: Whether a call without a token is one of `allUsers`, and a parameter one segment of the path as it was
            sent; else it is refused, and parameters are matched in the decoded path.
    """

    service: str
    title: str
    legacy: bool = False
    locations: frozenset[str] = frozenset()
    unserved_locations: Mapping[str, str] = field(default_factory=dict)
    public: bool = False
    rules: list[_Rule] = field(default_factory=list)

    def route(
        self,
        method: str,
        path: str,
        *,
        needs: str = "",
        on: str = "projects/{project}",
        query: str = "",
        body: str = "",
        reads_body: bool = False,
    ) -> Callable[[H], H]:
        """Register a handler.

        Args:
            method: GET, POST, ...
            path: Google's path, below the API's prefix.
            needs: The permission that the caller needs.
            on: The resource that the permission is needed on.
            query: Names of the query parameters that the handler uses, separated by blanks.
            body: The field of the request message that the body is bound to, as refusals name it.
            reads_body: Whether the handler reads the body itself.
        """

        def register(handler: H) -> H:
            serves, heeded = method_of(method, path), frozenset(query.split())
            self.rules.append(_Rule(method, path, needs, on, heeded, body, reads_body, serves, handler))
            return handler

        return register

    @functools.cached_property
    def routes(self) -> list[Route]:
        """The rules as routes of the HTTP server, made once for all clouds of a process; first used when all are there.

        To compile the paths of all APIs takes most of a cloud's start.
        """
        kind = RawRoute if self.public else LateRoute
        return [kind(rule.path, _endpoint(self, rule), rule.method) for rule in self.rules]


def _endpoint(api: Api, rule: _Rule) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        cloud: Context = request.app.cloud  # of the route table
        try:
            uploads = rule.path.startswith(_UPLOADS)
            request = unpack_body(request, LARGEST_OBJECT if uploads else LARGEST_MESSAGE)
            call = _admit(cloud, api, rule, request)
            if rule.serves and rule.serves.request and not rule.reads_body:
                sent = json_object(await request.body(), null_is_empty=api.legacy)
                if not rule.field:
                    sent = {key: value for key, value in sent.items() if key not in rule.serves.bound}
                call.body = checked_message(sent, rule.serves.request, rule.field, keep_null=api.legacy)
            answer = rule.handler(call)
            if inspect.isawaitable(answer):
                answer = await answer
            if not isinstance(answer, Response):
                answer = _shape_response(call, rule, answer)
        except ApiError as refused:
            error = refused
            if isinstance(error, NotServedError) and rule.serves:
                error = error.during(rule.serves.id, service_of(rule.path))
            if error.status == 304:  # 304 has no body
                return Response(status_code=304)
            body = error.body(legacy=api.legacy, older=request.query_params.get("$.xgafv") == "1")
            return JSONResponse(body, error.status, _challenge(error))
        except Exception as error:
            log.exception("%s %s failed", request.method, request.url.path)
            full = is_full(error)
            internal = storage_full(cloud.layout.root) if full else ApiError("INTERNAL", "Internal error encountered.")
            return JSONResponse(internal.body(legacy=api.legacy), internal.status)
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    return endpoint


def _shape_response(call: Call, rule: _Rule, answer: Json) -> Json:
    """A response as the system parameters of the request ask for it."""
    if fields := call.query("fields"):
        answer = select_fields(answer, fields)
    if rule.serves and call.query("alt") == NUMBERS:
        answer = with_numbers(answer, rule.serves.response)
    return answer


def _challenge(error: ApiError) -> dict[str, str]:
    return {"WWW-Authenticate": 'Bearer realm="https://accounts.google.com/"'} if error.status == 401 else {}


def _admit(cloud: Context, api: Api, rule: _Rule, request: Request) -> Call:
    check_text("".join(map(str, request.path_params.values())))
    authorization = request.headers.get("authorization")
    caller = "" if api.public and authorization is None else caller_of(cloud, authorization, api.service)
    call = Call(cloud, request, caller)
    project = request.path_params.get("project", PROJECT)
    if project not in {PROJECT, PROJECT_NUMBER, "-", "_"}:
        raise permission_denied(rule.needs or "resourcemanager.projects.get", f"projects/{project}")
    if api.service and not cloud.is_enabled(api.service):
        raise service_disabled(api.service, api.title, PROJECT)
    if rule.needs and not caller:  # before the query: who may do nothing learns nothing
        call.require(rule.needs, call.name(rule.on))
    parameters = request.query_params.multi_items()
    call.arguments = check_query(rule.serves, parameters, rule.query) if rule.serves else dict(parameters)
    location = request.path_params.get("location", "-")
    if location in api.unserved_locations:
        what = api.unserved_locations[location]
        raise NotServedError(f"localcloud does not serve {what} (locations/{location}): name a region.")
    if location != "-" and location not in api.locations:
        raise ApiError("PERMISSION_DENIED", f"Permission denied on 'locations/{location}' (or it may not exist).")
    if rule.needs:
        call.require(rule.needs, call.name(rule.on))
    return call


def check_text(path: str) -> None:
    """Check that a decoded path was UTF-8.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        raise invalid("The path is not valid UTF-8.") from None


def caller_of(cloud: Context, authorization: str | None, service: str = "") -> str:
    """Return the e-mail of the account whose access token a header holds.

    Args:
        cloud: The project's state.
        authorization: The header's value.
        service: Name of the called API, for which an account may sign a token itself; "" for none.

    Raises:
        ApiError: UNAUTHENTICATED.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise unauthenticated_error("CREDENTIALS_MISSING")
    try:
        return cloud.tokens.caller(token.strip(), service)
    except TokenError:
        raise unauthenticated_error("ACCESS_TOKEN_TYPE_UNSUPPORTED") from None
