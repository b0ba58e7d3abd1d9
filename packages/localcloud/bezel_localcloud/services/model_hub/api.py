"""Stand-in for the Hugging Face hub, for listing and downloading models: made-up files of every model in the catalogue.

Responds like the hub's own API: a revision's commit, its tree with sizes and hashes, downloads by Range. Everything is
public. It stands in for another company's service, so it requires no Google token.
"""

import hashlib
import re
from collections.abc import Callable
from functools import cache

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bezel_catalog import NotInCatalogueError
from bezel_localcloud.core.paths import HUB_PREFIX
from bezel_simulated_vllm.synthetic_weights import model_files

_REPOSITORY = HUB_PREFIX + "{kind}/{owner}/{name}"
_LARGE = ".safetensors"


def routes() -> list[Route]:
    """Routes that need no token."""
    api = _REPOSITORY.replace("{kind}", "/api/models")
    return [
        _route(f"{api}/revision/{{revision}}", _revision),
        _route(f"{api}/tree/{{revision}}", _tree),
        _route(f"{_REPOSITORY.replace('{kind}', '')}/resolve/{{revision}}/{{path:path}}", _resolve),
    ]


def _route(path: str, respond: Callable[[Request, dict[str, bytes]], Response]) -> Route:
    """A route that responds with the files of the path's model and revision, or refuses."""

    async def endpoint(request: Request) -> Response:
        files = _files(request)
        return files if isinstance(files, Response) else respond(request, files)

    return Route(path, endpoint, methods=["GET"])


def _revision(request: Request, files: dict[str, bytes]) -> Response:
    siblings = [{"rfilename": path} for path in sorted(files)]
    name = _name(request)
    return JSONResponse({"id": name, "sha": _commit(name), "private": False, "gated": False, "siblings": siblings})


def _tree(_: Request, files: dict[str, bytes]) -> Response:
    return JSONResponse([_row(path, content) for path, content in sorted(files.items())])


def _resolve(request: Request, files: dict[str, bytes]) -> Response:
    path = str(request.path_params["path"])
    if path not in files:
        return _refusal(404, "EntryNotFound", "Entry not found")
    content, headers = files[path], {"x-repo-commit": _commit(_name(request)), "accept-ranges": "bytes"}
    requested = re.fullmatch(r"bytes=([0-9]{1,15})-([0-9]{0,15})", request.headers.get("range", ""))
    if requested is None:
        return Response(content, media_type="application/octet-stream", headers=headers)
    begin, end = int(requested[1]), min(int(requested[2] or len(content) - 1), len(content) - 1)
    if begin > end:
        return Response(status_code=416, headers={"content-range": f"bytes */{len(content)}"})
    headers["content-range"] = f"bytes {begin}-{end}/{len(content)}"
    return Response(content[begin : end + 1], 206, media_type="application/octet-stream", headers=headers)


def _row(path: str, content: bytes) -> dict[str, object]:
    """A file in the tree's listing: large files by the SHA-256 of their content, all by git's hash of their blob."""
    row: dict[str, object] = {"type": "file", "path": path, "size": len(content), "oid": _git_hash(content)}
    if path.endswith(_LARGE):
        oid = hashlib.sha256(content).hexdigest()
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n".encode()
        row |= {"oid": _git_hash(pointer), "lfs": {"oid": oid, "size": len(content), "pointerSize": len(pointer)}}
    return row


def _git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _files(request: Request) -> dict[str, bytes] | Response:
    name = _name(request)
    try:
        files = _model_files(name)
    except NotInCatalogueError:
        # The hub does not reveal whether a model is private or does not exist.
        return _refusal(401, "RepoNotFound", "Invalid username or password.")
    if request.path_params["revision"] not in {"main", _commit(name)}:
        return _refusal(404, "RevisionNotFound", f"Invalid rev id: {request.path_params['revision']}")
    return files


@cache
def _model_files(name: str) -> dict[str, bytes]:
    return model_files(name)


def _name(request: Request) -> str:
    return f"{request.path_params['owner']}/{request.path_params['name']}"


def _commit(name: str) -> str:
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()


def _refusal(status: int, code: str, text: str) -> Response:
    return JSONResponse({"error": text}, status, headers={"x-error-code": code, "x-error-message": text})
