"""Administrative routes, which no client of a model needs but which respond to every caller.

`--api-key` guards only those under /v1 and /inference. Scaling of experts fails as it does on one engine; the scale-out
routes return the error of a disabled feature (the option that enables them is not simulated).
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from bezel.simulated_vllm.api.bodies import content_of
from bezel.simulated_vllm.api.errors import ApiError, json_response

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.responses import Response

_SCALE_OUT = (
    "/inference/v1/generate",
    "/inference/v1/abort_requests",
    *(
        f"/v1/{api}/{what}"
        for api, what in (
            ("chat/completions", "render"),
            ("chat/completions", "derender"),
            ("completions", "render"),
            ("completions", "derender"),
            ("messages", "render"),
            ("responses", "render"),
        )
    ),
)


def administration_routes() -> list[Route]:
    """Return the routes of this module."""
    return [
        Route("/scale_elastic_ep", _scale, methods=["POST"]),
        Route("/is_scaling_elastic_ep", _is_scaling, methods=["POST"]),
        Route("/kv_event_sources", _kv_event_sources, methods=["GET"]),
        *(Route(path, _scale_out, methods=["POST"]) for path in _SCALE_OUT),
    ]


async def _scale(request: Request) -> Response:
    body = content_of(request.headers.get("content-type", ""), await request.body())
    size = body.get("new_data_parallel_size") if isinstance(body, dict) else None
    if size is None:
        raise ApiError("new_data_parallel_size is required", "Bad Request")
    if not isinstance(size, int) or size <= 0:
        raise ApiError("new_data_parallel_size must be a positive integer", "Bad Request")
    raise ApiError("Scale failed", "Internal Server Error", status=500)


async def _is_scaling(request: Request) -> Response:
    del request
    return json_response({"is_scaling_elastic_ep": False})


async def _kv_event_sources(request: Request) -> Response:
    del request
    return json_response({})


async def _scale_out(request: Request) -> Response:
    del request
    message = "Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them."
    raise ApiError(message, "PermissionDeniedError", status=403)


@cache
def description(paths: frozenset[str]) -> dict[str, Any]:
    """Return the release's OpenAPI document, reduced to the paths that are served here and the schemas they use.

    `openapi.json.gz` is the document that the real server of the release sent.
    """
    whole = json.loads(gzip.decompress(Path(__file__).with_name("openapi.json.gz").read_bytes()))
    served = {path: item for path, item in whole["paths"].items() if path in paths}
    schemas, needed = whole["components"]["schemas"], set[str]()
    left = list(_references(served))
    while left:
        name = left.pop()
        if name not in needed:
            needed.add(name)
            left.extend(_references(schemas[name]))
    kept = {name: schema for name, schema in schemas.items() if name in needed}
    return {**whole, "paths": served, "components": {"schemas": kept}}


def _references(part: object) -> Iterable[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "$ref" and isinstance(value, str):
                yield value.rpartition("/")[2]
            else:
                yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)
