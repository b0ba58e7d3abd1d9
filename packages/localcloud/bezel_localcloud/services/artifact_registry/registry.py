"""Registry: the OCI distribution spec's routes, and the look-up of images for those that run them.

Owns the routes. Leaves out reads (pulls.py), uploads of blobs (uploads.py), pushes and deletes (pushes.py), names and
registries (names.py).
"""

from starlette.routing import Route

from bezel_base.json_documents import read_encodable_json
from bezel_localcloud.core.errors import ApiError, permission_denied
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.faults.platform import hides_image
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.artifact_registry import pulls, pushes, uploads
from bezel_localcloud.services.artifact_registry.errors import RegistryError
from bezel_localcloud.services.artifact_registry.exchange import Handler, endpoint
from bezel_localcloud.services.artifact_registry.images import (
    Reference,
    parse_reference,
    published_manifest,
    upstream_image,
    upstream_manifest,
)
from bezel_localcloud.services.artifact_registry.manifests import Manifest, parse_manifest
from bezel_localcloud.services.artifact_registry.names import GOOGLE, READ, RegistryTarget, images_of, upstream_of

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_HANDLERS: dict[str, dict[str, Handler]] = {
    "/v2/": {"GET": pulls.ping},
    "/v2/token": {"GET": pulls.token},
    "/v2/_catalog": {"GET": pulls.catalog},
    "/v2/{name:path}/blobs/uploads/": {"POST": uploads.start},
    "/v2/{name:path}/blobs/uploads/{upload}": {
        "GET": uploads.status,
        "PATCH": uploads.patch,
        "PUT": uploads.put,
        "DELETE": uploads.cancel,
    },
    "/v2/{name:path}/blobs/{digest}": {"GET": pulls.get_blob, "DELETE": pushes.delete_blob},
    "/v2/{name:path}/manifests/{reference}": {
        "GET": pulls.get_manifest,
        "PUT": pushes.put_manifest,
        "DELETE": pushes.delete_manifest,
    },
    "/v2/{name:path}/tags/list": {"GET": pulls.list_tags},
    "/v2/{name:path}/referrers/{digest}": {"GET": pulls.list_referrers},
}


def routes(cloud: Context) -> list[Route]:
    """Routes of the registry; Docker Hub's public images need no token."""
    return [Route(path, endpoint(cloud, handlers), methods=_METHODS) for path, handlers in _HANDLERS.items()]


def find_image(cloud: Context, image: Reference, reader: str | None) -> Manifest:
    """Return the manifest of an image for a reader (None: unauthenticated).

    Raises:
        ApiError: NOT_FOUND or PERMISSION_DENIED.
    """
    if upstream_image(image.registry, image.repository) is not None:  # public images of Google's registry among them
        manifest = upstream_manifest(image.registry, image.repository, image.version)
        manifest = manifest or published_manifest(image.registry, image.repository, image.digest)
    else:
        manifest = _in_repository(cloud, image, reader) if image.registry.endswith(GOOGLE) else None
    if manifest is None or hides_image(cloud.faults, reader):
        raise ApiError("NOT_FOUND", f"manifest unknown: {image.registry}/{image.repository} {image.version}")
    return manifest


def pushed_entrypoint(cloud: Context, image: str) -> list[str] | None:
    """Entrypoint and command in the config of an image that was pushed; None for an image of the catalogue.

    For an index, those of its first manifest.
    """
    reference = parse_reference(image)
    if reference is None or not reference.registry.endswith(GOOGLE):
        return None
    name = RegistryTarget(reference.registry, reference.repository, reference.repository).image
    images = images_of(cloud)
    resolved = images.resolve(name, reference.version)
    if resolved is not None and resolved[1]["children"]:
        resolved = images.resolve(name, resolved[1]["children"][0]["digest"])
    if resolved is None:
        return None
    manifest = parse_manifest(images.content(resolved[0]), resolved[1]["mediaType"])
    digest = "" if manifest.is_index else manifest.body["config"]["digest"]
    try:
        config = read_encodable_json(images.content(digest))["config"] if digest else {}
        return [str(word) for word in (*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ()))]
    except (ValueError, KeyError, TypeError, AttributeError):  # an artifact whose config is another document
        return []


def _in_repository(cloud: Context, image: Reference, reader: str | None) -> Manifest | None:
    try:
        name = RegistryTarget(image.registry, image.repository, image.repository).image
    except RegistryError:  # no path below a repository
        return None
    if not cloud.access.allows(reader, READ, name.repository):
        raise permission_denied(READ, name.repository)
    if not name.repository.startswith(f"projects/{PROJECT}/"):
        return None
    repository = cloud.store.get("repository", name.repository)
    if repository is None:
        raise ApiError("NOT_FOUND", f'Repository "{name.repository}" not found')
    if upstream := upstream_of(repository):
        return upstream_manifest(upstream, name.path, image.version)
    images = images_of(cloud)
    resolved = images.resolve(name, image.version)
    return None if resolved is None else parse_manifest(images.content(resolved[0]), resolved[1]["mediaType"])
