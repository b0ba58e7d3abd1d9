"""One request to the registry: its target, its caller, and the checks that every handler begins with."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.store import is_full, storage_full
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.artifact_registry import access
from bezel_localcloud.services.artifact_registry.errors import VERSION, RegistryError
from bezel_localcloud.services.artifact_registry.image_store import Image, ImageStore
from bezel_localcloud.services.artifact_registry.names import (
    DELETE,
    READ,
    RegistryTarget,
    check_allowed,
    images_of,
    repository_of,
    target_of,
    upstream_of,
)

_ACTIONS = {READ: "pull", DELETE: "delete"}
_MAX_PAGE = 10_000


@dataclass(frozen=True)
class Exchange:
    """A request and the project that it is for."""

    cloud: Context
    request: Request

    @cached_property
    def target(self) -> RegistryTarget:
        """The named registry and image."""
        return target_of(self.request)

    @cached_property
    def caller(self) -> str | None:
        """E-mail of the caller; None for an unauthenticated one."""
        return access.caller_of(self.cloud, self.request)

    @cached_property
    def images(self) -> ImageStore:
        """Contents of the repositories."""
        return images_of(self.cloud)

    @property
    def now(self) -> float:
        """The platform's time."""
        return self.cloud.pace.now()

    def argument(self, name: str) -> str:
        """An argument of the query, "" for none."""
        return self.request.query_params.get(name, "")

    def reading(self) -> tuple[Image, Json]:
        """The named image and its repository, for a caller that may read them."""
        return self._admit(READ)

    def writing(self, permission: str) -> Image:
        """The named image, for a caller that may change it.

        Raises:
            RegistryError: The caller lacks the permission, or the repository's contents are not pushed.
        """
        if not self.target.is_google:
            text = (
                "requested access to the resource is denied: push to LOCATION-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE"
            )
            raise RegistryError("DENIED", text)
        image, repository = self._admit(permission)
        if upstream_of(repository):
            raise RegistryError("UNSUPPORTED", "The repository is a remote repository: its images come from upstream.")
        return image

    def _admit(self, permission: str) -> tuple[Image, Json]:
        image, caller = self.target.image, self.caller
        try:
            check_allowed(self.cloud, permission, image.repository, caller)
        except RegistryError as error:
            if not access.is_anonymous(self.request):
                raise
            scope = f"repository:{self.target.shown}:{_ACTIONS.get(permission, 'push,pull')}"
            headers = access.challenge(self.request, scope)
            raise RegistryError("UNAUTHORIZED", error.message, headers=headers) from None
        return image, repository_of(self.cloud, image)

    def page(self, names: list[str]) -> tuple[list[str], dict[str, str]]:
        """The page of a sorted list that `n` and `last` ask for, and the link to the next one.

        Raises:
            RegistryError: PAGINATION_NUMBER_INVALID.
        """
        text, last = self.argument("n"), self.argument("last")
        number = decimal(text) if text else _MAX_PAGE
        if number is None:
            raise RegistryError("PAGINATION_NUMBER_INVALID", f"invalid number of results requested: {text[:50]}")
        size = min(number, _MAX_PAGE)
        rest = [name for name in names if name > last]
        shown = rest[:size]
        if len(rest) == len(shown) or not shown:
            return shown, {}
        query = {"n": str(size), "last": shown[-1]} | ({"ns": self.argument("ns")} if self.argument("ns") else {})
        return shown, {"Link": f'<{self.request.url.path}?{urlencode(query)}>; rel="next"'}


Handler = Callable[[Exchange], Awaitable[Response]]


def endpoint(cloud: Context, handlers: Mapping[str, Handler]) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint of the HTTP server.

    Args:
        cloud: The project.
        handlers: HTTP method -> handler; GET serves HEAD as well.
    """

    async def respond(request: Request) -> Response:
        handler = handlers.get("GET" if request.method == "HEAD" else request.method)
        try:
            if handler is None:
                raise RegistryError("UNSUPPORTED", f"The operation is unsupported: {request.method}")  # noqa: TRY301
            return await handler(Exchange(cloud, request))
        except RegistryError as error:
            return error.response()
        except ClientDisconnect:
            return Response(status_code=400, headers=VERSION)  # the client is gone
        except Exception as error:
            if not is_full(error):
                raise
            return RegistryError("UNKNOWN", storage_full(cloud.layout.root).message).response()

    return respond
