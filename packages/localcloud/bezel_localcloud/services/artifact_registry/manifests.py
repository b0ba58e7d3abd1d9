"""Manifests of images as clients push them: which documents are valid, and what they refer to. Pure."""

from dataclasses import dataclass

from bezel_base.json_documents import read_encodable_json
from bezel_localcloud.core.files.blobs import digest_of, is_digest
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.services.artifact_registry.errors import RegistryError

MAX_BYTES = 4 << 20  # source: OCI distribution spec 1.1, "Pushing manifests": registries accept at least 4 MiB
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_DOCKER = "application/vnd.docker.distribution.manifest"
_INDEXES = frozenset({INDEX_TYPE, f"{_DOCKER}.list.v2+json"})
_IMAGES = frozenset({MANIFEST_TYPE, f"{_DOCKER}.v2+json"})
# Layers that a registry may not distribute: they are fetched from their URLs.
_FOREIGN = ("application/vnd.oci.image.layer.nondistributable.", "application/vnd.docker.image.rootfs.foreign.")


@dataclass(frozen=True)
class Manifest:
    """A valid manifest.

    Attributes:
        content: Its bytes, kept as they were sent.
        media_type: Its type.
        body: The parsed document.
    """

    content: bytes
    media_type: str
    body: Json

    @property
    def digest(self) -> str:
        """sha256 of the bytes."""
        return digest_of(self.content)

    @property
    def is_index(self) -> bool:
        """Whether it lists manifests instead of layers."""
        return self.media_type in _INDEXES

    @property
    def children(self) -> list[Json]:
        """Descriptors of the manifests that an index lists."""
        return (self.body["manifests"] or []) if self.is_index else []

    @property
    def blobs(self) -> list[Json]:
        """Descriptors of config and layers, without layers that a registry does not hold."""
        if self.is_index:
            return []
        layers = [layer for layer in self.body["layers"] or [] if not str(layer.get("mediaType")).startswith(_FOREIGN)]
        return [self.body["config"], *layers]

    @property
    def subject(self) -> str:
        """Digest of the manifest that this one refers to, "" for none."""
        return str((self.body.get("subject") or {}).get("digest", ""))

    @property
    def artifact_type(self) -> str:
        """Type of the artifact; that of its config where the manifest names none."""
        return str(self.body.get("artifactType") or (self.body.get("config") or {}).get("mediaType") or "")

    @property
    def bytes_of_image(self) -> int:
        """Size of everything that it refers to."""
        return sum(int(part.get("size", 0)) for part in (*self.blobs, *self.children))


def parse_manifest(content: bytes, content_type: str) -> Manifest:
    """Return the manifest in the body of a push.

    Args:
        content: The body.
        content_type: Its Content-Type; "" for none, so that the document names its own.

    Raises:
        RegistryError: MANIFEST_INVALID.
    """
    try:
        body = read_encodable_json(content)
    except ValueError:
        raise _invalid("the manifest is not JSON") from None
    if not isinstance(body, dict):
        raise _invalid("the manifest is not a JSON object")
    named, sent = body.get("mediaType"), content_type.partition(";")[0].strip()
    media_type = sent or str(named or "")
    if media_type not in _INDEXES | _IMAGES:
        raise _invalid(f"unsupported manifest media type: {media_type or 'none'}")
    if named is not None and named != media_type:
        raise _invalid(f"Content-Type is {media_type}, but the manifest's mediaType is {named}")
    if body.get("schemaVersion") != 2:
        raise _invalid("schemaVersion is not 2")
    _check_shape(body, media_type)
    return Manifest(content, media_type, body)


def _check_shape(body: Json, media_type: str) -> None:
    is_index = media_type in _INDEXES
    # A document that is an image to one client and an index to another could hide one of them from a scanner.
    if mixed := [field for field in (("config", "layers") if is_index else ("manifests",)) if field in body]:
        raise _invalid(f"a manifest of type {media_type} has no field {mixed[0]}")
    if not is_index:
        _check_descriptor("config", body.get("config"))
    parts = "manifests" if is_index else "layers"
    descriptors = body.get(parts, "")
    if descriptors is not None and not isinstance(descriptors, list):  # null is an empty list in Go's JSON
        raise _invalid(f"{parts} is not a list")
    for number, descriptor in enumerate(descriptors or ()):
        _check_descriptor(f"{parts}[{number}]", descriptor)
    if body.get("subject") is not None:
        _check_descriptor("subject", body["subject"])
    annotations = body.get("annotations") or {}
    if not isinstance(annotations, dict) or not all(isinstance(value, str) for value in annotations.values()):
        raise _invalid("annotations are not a map of strings")


def _check_descriptor(field: str, descriptor: object) -> None:
    if not isinstance(descriptor, dict):
        raise _invalid(f"{field} is not a descriptor")
    size = descriptor.get("size")
    if not isinstance(descriptor.get("mediaType"), str) or not is_digest(str(descriptor.get("digest"))):
        raise _invalid(f"{field} needs a mediaType and a digest of sha256 or sha512")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise _invalid(f"{field} needs a size of 0 or more")


def _invalid(text: str) -> RegistryError:
    return RegistryError("MANIFEST_INVALID", text)
