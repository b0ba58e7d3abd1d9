"""From a request to a handler: routing, the caller's token, enabled APIs, permissions, and errors in Google's shape."""

from __future__ import annotations

import inspect
import json
import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bezel.localcloud.errors import ApiError, invalid, permission_denied, service_disabled, unauthenticated
from bezel.localcloud.keys import TokenError
from bezel.localcloud.layout import PROJECT, PROJECT_NUMBER
from bezel.localcloud.messages import checked_message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from bezel.localcloud.cloud import Cloud
    from bezel.localcloud.shapes import Json

    Answer = Json | Response
    Handler = Callable[["Call"], Answer | Awaitable[Answer]]

log = logging.getLogger(__name__)


class _Segment(Convertor[str]):
    """One segment of a path, without the colon that begins a custom method."""

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
        cloud: Everything that exists.
        request: As it came.
        caller: E-mail of the service account whose token came with it.
    """

    cloud: Cloud
    request: Request
    caller: str

    def param(self, name: str) -> str:
        """A part of the path."""
        value = str(self.request.path_params[name])
        return PROJECT if name == "project" else value

    def query(self, name: str, default: str = "") -> str:
        """A query argument; also the snake_case spelling that some clients send."""
        snake = re.sub(r"[A-Z]", lambda match: f"_{match.group().lower()}", name)
        arguments = self.request.query_params
        return arguments.get(name, arguments.get(snake, default))

    def number(self, name: str) -> int:
        """A query argument that is a number, 0 without it.

        Raises:
            ApiError: INVALID_ARGUMENT.
        """
        text = self.query(name) or "0"
        if not text.isdigit():
            raise invalid(f"Invalid value at '{name}' (TYPE_INT32), \"{text}\"", (name, "must be a number"))
        return int(text)

    def name(self, template: str) -> str:
        """A resource name from a template such as "projects/{project}/secrets/{secret}"."""
        return template.format_map({key: self.param(key) for key in self.request.path_params})

    async def json(self) -> Json:
        """The body as a JSON object; an absent body is an empty one.

        Raises:
            ApiError: INVALID_ARGUMENT.
        """
        raw = await self.request.body()
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            raise invalid("Invalid JSON payload received. Unable to parse the body.") from None
        if not isinstance(body, dict):
            raise invalid("Invalid JSON payload received. Root element must be a message.")
        return body

    async def message(self, message: str, where: str = "") -> Json:
        """The body as one of Google's messages, every field of it known; `where` is the field that it is bound to.

        Raises:
            ApiError: INVALID_ARGUMENT.
        """
        return checked_message(await self.json(), message, where)

    def page(self, items: list[tuple[str, Json]], key: str, *, default: int = 100) -> Json:
        """One page of (name, body): its bodies under `key`, and the token of the next page if there is one."""
        size = self.number("pageSize") or self.number("maxResults") or default
        after = self.query("pageToken")
        rest = [item for item in items if item[0] > after]
        shown, more = rest[:size], rest[size:]
        page: Json = {key: [body for _, body in shown]} if shown else {}
        return page | ({"nextPageToken": shown[-1][0]} if more else {})


@dataclass(frozen=True)
class _Rule:
    method: str
    path: str
    needs: str
    on: str
    handler: Handler


@dataclass
class Api:
    """The handlers of one Google API.

    Attributes:
        service: Name in Service Usage; "" for what is always there.
        title: Name for people.
        legacy: Errors in Cloud Storage's shape.
    """

    service: str
    title: str
    legacy: bool = False
    rules: list[_Rule] = field(default_factory=list)

    def route(
        self, method: str, path: str, *, needs: str = "", on: str = "projects/{project}"
    ) -> Callable[[Handler], Handler]:
        """Register a handler: the permission it `needs`, and the resource it needs it `on`."""

        def register(handler: Handler) -> Handler:
            self.rules.append(_Rule(method, path, needs, on, handler))
            return handler

        return register

    def routes(self, cloud: Cloud) -> list[Route]:
        """The rules as routes of the HTTP server."""
        return [Route(rule.path, _endpoint(cloud, self, rule), methods=[rule.method]) for rule in self.rules]


def _endpoint(cloud: Cloud, api: Api, rule: _Rule) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            call = _admit(cloud, api, rule, request)
            answer = rule.handler(call)
            if inspect.isawaitable(answer):
                answer = await answer
        except ApiError as error:
            return JSONResponse(error.body(legacy=api.legacy), error.status, _challenge(error))
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            internal = ApiError("INTERNAL", "Internal error encountered.")
            return JSONResponse(internal.body(legacy=api.legacy), internal.status)
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    return endpoint


def _challenge(error: ApiError) -> dict[str, str]:
    return {"WWW-Authenticate": 'Bearer realm="https://accounts.google.com/"'} if error.status == 401 else {}


def _admit(cloud: Cloud, api: Api, rule: _Rule, request: Request) -> Call:
    caller = caller_of(cloud, request.headers.get("authorization"))
    call = Call(cloud, request, caller)
    project = request.path_params.get("project", PROJECT)
    if project not in {PROJECT, PROJECT_NUMBER, "-", "_"}:
        raise permission_denied(rule.needs or "resourcemanager.projects.get", f"projects/{project}")
    if api.service and not cloud.is_enabled(api.service):
        raise service_disabled(api.service, api.title, PROJECT)
    if rule.needs:
        resource = call.name(rule.on)
        if not cloud.access.allows(caller, rule.needs, resource):
            raise permission_denied(rule.needs, resource)
    return call


def caller_of(cloud: Cloud, authorization: str | None) -> str:
    """E-mail of the account whose access token a header holds.

    Raises:
        ApiError: UNAUTHENTICATED.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise unauthenticated("CREDENTIALS_MISSING")
    try:
        return cloud.tokens.caller(token.strip())
    except TokenError:
        raise unauthenticated("ACCESS_TOKEN_TYPE_UNSUPPORTED") from None


def unknown_method(request: Request) -> Response:
    """The answer where no rule fits."""
    error = ApiError("NOT_FOUND", f"Method not found: {request.method} {request.url.path}")
    return JSONResponse(error.body(), error.status)
