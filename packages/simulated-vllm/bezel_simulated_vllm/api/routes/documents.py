"""Pages about the API: FastAPI's own, as the real server sends them, around the published document."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_PAGES = {"/docs": "docs", "/docs/oauth2-redirect": "oauth2-redirect", "/redoc": "redoc"}


def page_routes() -> list[Route]:
    """Return the routes of the pages; they take HEAD beside GET, which no route of vLLM's own does."""
    return [Route(path, _page, methods=["GET", "HEAD"]) for path in _PAGES]


async def _page(request: Request) -> Response:
    return HTMLResponse(_text(_PAGES[request.url.path]))


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(f"{name}.html").read_text(encoding="utf-8")
