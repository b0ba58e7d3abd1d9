"""Stand-in for the Hugging Face hub, for listing and downloading models.

It has made-up files of every model in the catalogue, and what was put there (`stored`). Responds like the hub's own
API: a revision's commit, its tree with sizes and hashes, downloads by Range. Everything is public. It stands in for
another company's service, so it requires no Google token.
"""

import hashlib
import re
from collections.abc import Callable
from functools import cache

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bezel_catalog import NotInCatalogueError
from bezel_localcloud.core.paths import HUB_PREFIX, Paths
from bezel_localcloud.services.model_hub.stored import StoredRepository, commit_of, find_repository
from bezel_simulated_vllm.synthetic_weights import model_files

_REPOSITORY = HUB_PREFIX + "{kind}/{owner}/{name}"
_LARGE = ".safetensors"


def routes(paths: Paths) -> list[Route]:
    """Routes that need no token.

    Args:
        paths: Layout of localcloud's directory.
    """
    api = _REPOSITORY.replace("{kind}", "/api/models")
    return [
        _route(paths, f"{api}/revision/{{revision:path}}", _revision),
        _route(paths, f"{api}/tree/{{revision:path}}", _tree),
        _route(paths, f"{_REPOSITORY.replace('{kind}', '')}/resolve/{{revision_and_path:path}}", _resolve),
    ]


def _route(paths: Paths, path: str, respond: Callable[[Request, StoredRepository], Response]) -> Route:
    """A route that responds with the repository of the path's name and revision, or refuses."""

    async def endpoint(request: Request) -> Response:
        repository = _repository(paths, request)
        return repository if isinstance(repository, Response) else respond(request, repository)

    return Route(path, endpoint, methods=["GET"])


def _revision(request: Request, repository: StoredRepository) -> Response:
    siblings = [{"rfilename": path} for path in sorted(repository.files)]
    answer = {"id": _name(request), "sha": repository.commit, "private": False, "gated": False, "siblings": siblings}
    return JSONResponse(answer)


def _tree(_: Request, repository: StoredRepository) -> Response:
    return JSONResponse([_row(path, content) for path, content in sorted(repository.files.items())])


def _resolve(request: Request, repository: StoredRepository) -> Response:
    path = _revision_and_path(request, repository)[1]
    if path not in repository.files:
        return _refusal(404, "EntryNotFound", "Entry not found")
    content, headers = repository.files[path], {"x-repo-commit": repository.commit, "accept-ranges": "bytes"}
    headers["etag"] = f'"{_git_hash(content)}"'
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


def _repository(paths: Paths, request: Request) -> StoredRepository | Response:
    name = _name(request)
    try:
        repository = find_repository(paths, name) or _catalogue_repository(name)
    except (NotInCatalogueError, ValueError):
        # The hub does not reveal whether a model is private or does not exist.
        return _refusal(401, "RepoNotFound", "Invalid username or password.")
    revision = _revision_and_path(request, repository)[0]
    if revision not in {repository.commit, *repository.revisions}:
        return _refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
    return repository


def _revision_and_path(request: Request, repository: StoredRepository) -> tuple[str, str]:
    """The revision that is asked for, and the file's path, "" for none; a branch's name may have slashes too."""
    if "revision" in request.path_params:
        return str(request.path_params["revision"]), ""
    rest = str(request.path_params["revision_and_path"])
    revision = next((name for name in repository.revisions if rest.startswith(f"{name}/")), rest.partition("/")[0])
    return revision, rest.removeprefix(f"{revision}/")


@cache
def _catalogue_repository(name: str) -> StoredRepository:
    return StoredRepository(commit_of(name), ("main",), model_files(name))


def _name(request: Request) -> str:
    return f"{request.path_params['owner']}/{request.path_params['name']}"


def _refusal(status: int, code: str, text: str) -> Response:
    return JSONResponse({"error": text}, status, headers={"x-error-code": code, "x-error-message": text})
