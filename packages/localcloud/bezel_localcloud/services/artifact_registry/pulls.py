"""Reads of the registry protocol: manifests, blobs, tags, referrers, and the catalogue of images."""

import re
from datetime import datetime

from starlette.responses import FileResponse, JSONResponse, Response

from bezel_localcloud.core.files.blobs import is_digest
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.faults.platform import hides_image
from bezel_localcloud.services.artifact_registry import access
from bezel_localcloud.services.artifact_registry.errors import VERSION, RegistryError
from bezel_localcloud.services.artifact_registry.exchange import Exchange
from bezel_localcloud.services.artifact_registry.image_store import Image
from bezel_localcloud.services.artifact_registry.images import upstream_image, upstream_manifest
from bezel_localcloud.services.artifact_registry.manifests import INDEX_TYPE
from bezel_localcloud.services.artifact_registry.names import GOOGLE, READ, upstream_of


async def ping(exchange: Exchange) -> Response:
    """Support of the protocol; a client without credentials learns where to get a token."""
    if access.is_anonymous(exchange.request):
        raise RegistryError("UNAUTHORIZED", "Unauthenticated request.", headers=access.challenge(exchange.request))
    _ = exchange.caller
    return JSONResponse({}, headers=VERSION)


async def token(exchange: Exchange) -> Response:
    """A token for the caller's credentials."""
    return access.token(exchange.cloud, exchange.request)


async def get_manifest(exchange: Exchange) -> Response:
    """A manifest by tag or digest."""
    reference = exchange.request.path_params["reference"]
    image, upstream = _source(exchange)
    if image is not None:
        stored = exchange.images.resolve(image, reference)
        parts = None if stored is None else (exchange.images.content(stored[0]), stored[1]["mediaType"], stored[0])
        if parts is not None:
            _check_accepted(exchange, parts[1])
    else:
        manifest = upstream_manifest(*upstream, reference)
        parts = None if manifest is None else (manifest.content, manifest.media_type, manifest.digest)
    if parts is None or hides_image(exchange.cloud.faults, exchange.caller):
        raise RegistryError("MANIFEST_UNKNOWN", f'Failed to fetch "{reference}"')
    content, media_type, digest = parts
    headers = VERSION | {"Docker-Content-Digest": digest, "ETag": f'"{digest}"'}
    return Response(content, headers=headers | {"Content-Type": media_type})


async def get_blob(exchange: Exchange) -> Response:
    """A config or a layer, or a range of it."""
    digest = exchange.request.path_params["digest"]
    if not is_digest(digest):
        raise RegistryError("DIGEST_INVALID", f"Invalid digest: {digest[:200]}")
    image, upstream = _source(exchange)
    if image is not None:
        has = exchange.images.has_blob(image, digest)
    else:
        content = (remote_image.blobs if (remote_image := upstream_image(*upstream)) else {}).get(digest)
        has = content is not None
        if content is not None:
            exchange.cloud.blobs.keep(content, digest)
    if not has:
        raise RegistryError("BLOB_UNKNOWN", f"blob unknown to registry: {digest}")
    headers = VERSION | {"Docker-Content-Digest": digest, "ETag": f'"{digest}"'}
    path = exchange.cloud.blobs.path(digest)
    if not _is_range(exchange.request.headers.get("range")):
        return Response(status_code=416, headers=VERSION | {"Content-Range": f"bytes */{path.stat().st_size}"})
    return FileResponse(path, media_type="application/octet-stream", headers=headers)


async def list_tags(exchange: Exchange) -> Response:
    """The tags of an image; Artifact Registry adds its manifests and the images below it."""
    image, upstream = _source(exchange)
    if image is None:
        remote_image = upstream_image(*upstream)
        if remote_image is None:
            raise RegistryError("NAME_UNKNOWN", f"repository name not known to registry: {exchange.target.name}")
        shown, link = exchange.page(sorted(remote_image.tags))
        return JSONResponse({"name": exchange.target.shown, "tags": shown}, headers=VERSION | link)
    children = _children(exchange, image)
    manifests = exchange.images.manifests(image)
    if not manifests and not children:
        raise RegistryError("NAME_UNKNOWN", f"Requested entity was not found: {exchange.target.name}")
    tags = exchange.images.tags(image)
    shown, link = exchange.page(list(tags))
    tags_of: dict[str, list[str]] = {}
    for tag, digest in tags.items():
        tags_of.setdefault(digest, []).append(tag)
    body = {
        "child": children,
        "manifest": {digest: _manifest_entry(row, tags_of.get(digest, [])) for digest, row in manifests},
        "name": exchange.target.shown,
        "tags": shown,
    }
    return JSONResponse(body, headers=VERSION | link)


async def list_referrers(exchange: Exchange) -> Response:
    """The manifests whose subject is a digest, as an index; filtered by `artifactType` if it is given."""
    digest, kind = exchange.request.path_params["digest"], exchange.argument("artifactType")
    if not is_digest(digest):
        raise RegistryError("DIGEST_INVALID", f"Invalid digest: {digest[:200]}")
    image, _ = _source(exchange)
    referrers = exchange.images.referrers(image, digest) if image is not None else []
    headers = VERSION | ({"OCI-Filters-Applied": "artifactType"} if kind else {})
    shown = [row for row in referrers if not kind or row.get("artifactType") == kind]
    body = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": shown}
    return JSONResponse(body, headers=headers, media_type=INDEX_TYPE)


async def catalog(exchange: Exchange) -> Response:
    """Names of all images in the repositories that the caller may read.

    With `?ns=` those of one location, else of all, each under the name by which this host serves it.
    """
    await ping(exchange)
    store, registry, names = exchange.cloud.store, exchange.argument("ns"), []
    for repository, _ in store.rows("repository"):
        _, project, _, location, _, identifier = repository.split("/")
        host = f"{location}{GOOGLE}"
        if registry in {"", host} and exchange.cloud.access.allows(exchange.caller, READ, repository):
            prefix = f"{project}/{identifier}" if registry else f"{host}/{project}/{identifier}"
            names += [f"{prefix}/{path}" for path in exchange.images.images(repository)]
    shown, link = exchange.page(sorted(names))
    return JSONResponse({"repositories": shown}, headers=VERSION | link)


def _source(exchange: Exchange) -> tuple[Image | None, tuple[str, str]]:
    """The stored image that is named; for a remote repository or a public registry None, and the upstream's name."""
    target = exchange.target
    if not target.is_google:
        _ = exchange.caller  # public, but a wrong token is refused all the same
        return None, (target.registry, target.name)
    image, repository = exchange.reading()
    upstream = upstream_of(repository)
    return (None if upstream else image), (upstream, image.path)


def _is_range(header: str | None) -> bool:
    """Whether a Range header, if there is one, asks for one range that does not end before it begins."""
    if header is None:
        return True
    match = re.fullmatch(r"bytes=([0-9]{0,15})-([0-9]{0,15})", header.strip())
    if match is None or not (match[1] or match[2]):
        return False
    return not (match[1] and match[2]) or int(match[1]) <= int(match[2])


def _check_accepted(exchange: Exchange, media_type: str) -> None:
    """Artifact Registry does not convert a manifest for a client that does not accept its type."""
    accept = ",".join(exchange.request.headers.getlist("accept"))
    accepted = [part.partition(";")[0].strip() for part in accept.split(",")]
    if not accept or not {"*/*", "application/*", media_type}.isdisjoint(accepted):
        return
    text = f'Manifest has media type "{media_type}" but client accepts {accepted}.'
    raise RegistryError("MANIFEST_UNKNOWN", text)


def _children(exchange: Exchange, image: Image) -> list[str]:
    """First parts of the names of the images below this one."""
    below = f"{image.path}/"
    others = exchange.images.images(image.repository)
    return sorted({path[len(below) :].partition("/")[0] for path in others if path.startswith(below)})


def _manifest_entry(row: Json, tags: list[str]) -> Json:
    """A manifest as the list of tags shows it; times are in milliseconds."""
    return {
        "imageSizeBytes": str(row["imageSizeBytes"]),
        "layerId": "",
        "mediaType": row["mediaType"],
        "tag": tags,
        "timeCreatedMs": _milliseconds(row["buildTime"]),
        "timeUploadedMs": _milliseconds(row["uploadTime"]),
    }


def _milliseconds(moment: str) -> str:
    try:
        return str(int(datetime.fromisoformat(moment).timestamp() * 1000)) if moment else "0"
    except ValueError:
        return "0"
