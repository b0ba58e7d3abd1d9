"""Responses to requests that no route matches: methods that only Google has, and paths of no method."""

import functools

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bezel_localcloud.core.errors import ApiError, NotServedError
from bezel_localcloud.http.methods import Method, method_of, served_methods, service_of, unserved_method


def unknown_method(request: Request) -> Response:
    """Response where no route matches: "not served" for a method that only Google has, 404 for an unknown one."""
    verb, path = request.method, request.scope["raw_path"].decode("ascii", "replace").partition("?")[0]
    prefix = path.split("/")[1]
    error: ApiError
    # A served method at a place where it has no route here. None ends with a slash: that is an empty name.
    place = None if path.endswith("/") else method_of(verb, path)
    if name := unserved_method(verb, path) or (place.id if place else ""):
        service, versions = service_of(path), _served_versions(name, path)
        error = NotServedError(
            f"localcloud does not serve {name} of {service} ({verb} {path}).{versions}", name, service
        )
    else:
        error = ApiError("NOT_FOUND", f"Method not found: {verb} {path}")
    return JSONResponse(error.body(legacy=prefix in {"storage", "compute"}), error.status)


def _served_versions(name: str, path: str) -> str:
    """A sentence on the versions that have a method of this name, or on the methods of the same resource."""
    here = _served_of(service_of(path))
    if versions := sorted({method.version for method in here if method.id == name}):
        return f" It serves {', '.join(versions)} of it."
    resource = name.rpartition(".")[0]
    near = sorted({method.id for method in here if method.id.rpartition(".")[0] == resource})
    near = near or sorted({method.id for method in here})
    return f" It serves: {', '.join(near)}." if near else ""


@functools.cache
def _served_of(service: str) -> list[Method]:
    return [method for method in served_methods().values() if service_of(method.path) == service]
