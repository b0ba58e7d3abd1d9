"""Registry v2: manifests by tag or digest, of the upstream registry and of Artifact Registry's repositories.

`?ns=<registry>` names the requested registry, as containerd does for a mirror; without it, Docker Hub is assumed.
"""

import base64
import binascii
import contextlib

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bezel.localcloud.core.errors import ApiError, permission_denied
from bezel.localcloud.core.paths import PROJECT
from bezel.localcloud.faults.platform import hides_image
from bezel.localcloud.routing.context import Context
from bezel.localcloud.routing.router import caller_of
from bezel.localcloud.services.artifact_registry.images import Manifest, Reference, upstream_manifest, upstream_tags

DOCKER_HUB = "docker.io"
BUILT_HERE = "localhost"  # registry of images that users build and push themselves, see images.toml
_HUB_ADDRESSES = {"https://registry-1.docker.io", "https://docker.io", "https://index.docker.io"}


def find_image(cloud: Context, image: Reference, reader: str | None) -> Manifest:
    """Return the manifest of an image for a reader (None: unauthenticated).

    Raises:
        ApiError: NOT_FOUND or PERMISSION_DENIED.
    """
    location, is_google, _ = image.registry.partition("-docker.pkg.dev")
    if not is_google:
        manifest = upstream_manifest(image.registry, image.repository, image.version)
    else:
        project, _, rest = image.repository.partition("/")
        repository_id, _, path = rest.partition("/")
        name = f"projects/{project}/locations/{location}/repositories/{repository_id}"
        if not cloud.access.allows(reader, "artifactregistry.repositories.downloadArtifacts", name):
            raise permission_denied("artifactregistry.repositories.downloadArtifacts", name)
        manifest = _in_repository(cloud, name, path, image.version) if project == PROJECT else None
    if manifest is None or hides_image(cloud.faults, reader):
        raise ApiError("NOT_FOUND", f"manifest unknown: {image.registry}/{image.repository} {image.version}")
    return manifest


def _in_repository(cloud: Context, name: str, path: str, version: str) -> Manifest | None:
    repository = cloud.store.get("repository", name)
    if repository is None:
        raise ApiError("NOT_FOUND", f'Repository "{name}" not found')
    remote = repository.get("remoteRepositoryConfig") or {}
    docker, common = remote.get("dockerRepository") or {}, remote.get("commonRepository") or {}
    address = (docker.get("customRepository") or {}).get("uri") or common.get("uri") or ""
    is_hub = docker.get("publicRepository") == "DOCKER_HUB" or address.rstrip("/") in _HUB_ADDRESSES
    if repository.get("mode", "STANDARD_REPOSITORY") == "STANDARD_REPOSITORY":
        return upstream_manifest(BUILT_HERE, path, version)
    return upstream_manifest(DOCKER_HUB, path, version) if is_hub else None


def routes(cloud: Context) -> list[Route]:
    """Routes of the registry; Docker Hub's public images need no token."""

    async def version_check(_: Request) -> Response:
        return JSONResponse({}, headers={"Docker-Distribution-API-Version": "registry/2.0"})

    async def manifest(request: Request) -> Response:
        registry = request.query_params.get("ns", DOCKER_HUB)
        version = request.path_params["version"]
        tag, digest = ("", version) if version.startswith("sha256:") else (version, "")
        image = Reference(registry, request.path_params["name"], tag, digest)
        try:
            found = find_image(cloud, image, _reader(cloud, request, registry))
        except ApiError as error:
            return _refusal(error)
        headers = {"Docker-Content-Digest": found.digest, "Docker-Distribution-API-Version": "registry/2.0"}
        return Response(found.content, media_type=found.media_type, headers=headers)

    async def tags(request: Request) -> Response:
        registry, name = request.query_params.get("ns", DOCKER_HUB), request.path_params["name"]
        found = upstream_tags(registry, name)
        if found is None:
            return _refusal(ApiError("NOT_FOUND", f"repository name not known to registry: {name}"), "NAME_UNKNOWN")
        return JSONResponse({"name": name, "tags": found})

    return [
        Route("/v2/", version_check, methods=["GET"]),
        Route("/v2/{name:path}/manifests/{version}", manifest, methods=["GET"]),
        Route("/v2/{name:path}/tags/list", tags, methods=["GET"]),
    ]


def _reader(cloud: Context, request: Request, registry: str) -> str | None:
    if not registry.endswith("-docker.pkg.dev"):
        return None
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":  # docker login -u oauth2accesstoken
        with contextlib.suppress(binascii.Error):  # text that cannot be decoded is no token either
            value = base64.b64decode(value + "=" * (-len(value) % 4)).decode("latin-1").partition(":")[2]
    return caller_of(cloud, f"Bearer {value}")


def _refusal(error: ApiError, code: str = "") -> Response:
    code = code or {404: "MANIFEST_UNKNOWN", 403: "DENIED", 401: "UNAUTHORIZED"}.get(error.status, "UNKNOWN")
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else None
    return JSONResponse({"errors": [{"code": code, "message": error.message, "detail": {}}]}, error.status, headers)
