"""Pushes of manifests, and deletes: manifests, tags, blobs."""

from datetime import datetime

from starlette.responses import Response

from bezel_base.json_documents import read_encodable_json
from bezel_localcloud.core.files.blobs import digest_of, is_digest
from bezel_localcloud.services.artifact_registry.errors import VERSION, RegistryError
from bezel_localcloud.services.artifact_registry.exchange import Exchange
from bezel_localcloud.services.artifact_registry.image_store import Image
from bezel_localcloud.services.artifact_registry.manifests import MAX_BYTES, Manifest, parse_manifest
from bezel_localcloud.services.artifact_registry.names import DELETE, WRITE, is_tag, repository_of

_MAX_CONFIG = 8 << 20


async def put_manifest(exchange: Exchange) -> Response:
    """Store a manifest whose parts are all there, under its digest and, if the path has one, a tag."""
    image, reference = exchange.writing(WRITE), exchange.request.path_params["reference"]
    content = await _body(exchange)
    tag, digest = _tag_and_digest(reference, content)
    manifest = parse_manifest(content, exchange.request.headers.get("content-type", ""))
    _check_parts(exchange, image, manifest)
    if tag and is_immutable(exchange, image) and exchange.images.tags(image).get(tag, digest) != digest:
        raise immutable("update", tag)
    exchange.images.put(image, manifest, digest, tag, exchange.now, _build_time(exchange, manifest))
    headers = {"Location": exchange.target.link(f"manifests/{digest}"), "Docker-Content-Digest": digest}
    if manifest.subject:
        headers["OCI-Subject"] = manifest.subject
    return Response(status_code=201, headers=VERSION | headers)


async def delete_manifest(exchange: Exchange) -> Response:
    """Delete a tag, or a manifest that no tag and no other manifest refers to."""
    image, reference = exchange.writing(DELETE), exchange.request.path_params["reference"]
    resolved = exchange.images.resolve(image, reference)
    if resolved is None:
        raise RegistryError("MANIFEST_UNKNOWN", f'Failed to fetch "{reference}"')
    if not is_digest(reference):
        if is_immutable(exchange, image):
            raise immutable("delete", reference)
        exchange.images.delete_tag(image, reference)
    else:
        if tags := exchange.images.tags_of(image, resolved[0]):
            text = f"Manifest is still referenced by tag: {tags[0]}"
            raise RegistryError("GOOGLE_MANIFEST_DANGLING_TAG", text)
        exchange.images.delete_manifest(image, resolved[0], exchange.now)
    return Response(status_code=202, headers=VERSION)


async def delete_blob(exchange: Exchange) -> Response:
    """Take a blob from an image."""
    image, digest = exchange.writing(DELETE), exchange.request.path_params["digest"]
    if not is_digest(digest):
        raise RegistryError("DIGEST_INVALID", f"Invalid digest: {digest[:200]}")
    if not exchange.images.has_blob(image, digest):
        raise RegistryError("BLOB_UNKNOWN", f"blob unknown to registry: {digest}")
    if any(digest in row["references"] for _, row in exchange.images.manifests(image)):
        raise RegistryError("UNSUPPORTED", f"The blob is still referenced by a manifest: {digest}")
    exchange.images.unlink(image, digest)
    return Response(status_code=202, headers=VERSION)


def is_immutable(exchange: Exchange, image: Image) -> bool:
    """Whether the repository's tags can neither be moved nor deleted."""
    return bool((repository_of(exchange.cloud, image).get("dockerConfig") or {}).get("immutableTags"))


def immutable(what: str, tag: str) -> RegistryError:
    """Artifact Registry's refusal to change an immutable tag."""
    return RegistryError("MANIFEST_INVALID", f"cannot {what} tag {tag}. The repository has enabled tag immutability")


async def _body(exchange: Exchange) -> bytes:
    """The whole body.

    Raises:
        RegistryError: SIZE_INVALID with 413.
    """
    content = bytearray()
    async for piece in exchange.request.stream():
        content += piece
        if len(content) > MAX_BYTES:
            text = f"the manifest is larger than {MAX_BYTES} bytes"
            raise RegistryError("SIZE_INVALID", text, status=413)
    return bytes(content)


def _tag_and_digest(reference: str, content: bytes) -> tuple[str, str]:
    """(tag or "", digest) of a push to a reference.

    Raises:
        RegistryError: DIGEST_INVALID or TAG_INVALID.
    """
    if is_digest(reference):
        if digest_of(content, reference.partition(":")[0]) != reference:
            raise RegistryError("DIGEST_INVALID", "provided digest did not match uploaded content")
        return "", reference
    if ":" in reference:
        raise RegistryError("DIGEST_INVALID", f"Invalid digest: {reference[:200]}")
    if not is_tag(reference):
        raise RegistryError("TAG_INVALID", f"Invalid tag: {reference[:200]}")
    return reference, digest_of(content)


def _check_parts(exchange: Exchange, image: Image, manifest: Manifest) -> None:
    """Check that the image has every blob and every manifest that a manifest refers to.

    Raises:
        RegistryError: MANIFEST_BLOB_UNKNOWN.
    """
    missing = [part["digest"] for part in manifest.blobs if not exchange.images.has_blob(image, part["digest"])]
    missing += [part["digest"] for part in manifest.children if exchange.images.resolve(image, part["digest"]) is None]
    if missing:
        raise RegistryError("MANIFEST_BLOB_UNKNOWN", f"blob unknown to registry: {missing[0]}")


def _build_time(exchange: Exchange, manifest: Manifest) -> str:
    """The time in an image's config, "" for none and for another text."""
    if manifest.is_index or not manifest.body["config"]["mediaType"].endswith(
        ("image.config.v1+json", "image.v1+json")
    ):
        return ""
    digest = manifest.body["config"]["digest"]
    if exchange.images.blob_size(digest) > _MAX_CONFIG:
        return ""
    try:
        created = str(read_encodable_json(exchange.images.content(digest))["created"])
        return created if datetime.fromisoformat(created).tzinfo else ""
    except (ValueError, KeyError, TypeError):
        return ""
