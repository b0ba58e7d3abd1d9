"""Contents of repositories: manifests, tags and blobs of each image, as rows beside the files of the blobs.

An image is a name below a repository; its manifests are rows by digest, its tags point to them, and a link says that
it has a blob. Leaves out the protocol (registry.py), permissions (names.py) and the REST API (artifacts_api.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bezel_localcloud.core.files.blobs import BlobFiles, is_digest
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.store import Store
from bezel_localcloud.services.artifact_registry.errors import RegistryError
from bezel_localcloud.services.artifact_registry.manifests import Manifest

_MANIFEST, _TAG, _LINK, UPLOAD = "imageManifest", "imageTag", "imageBlob", "imageUpload"
# Artifact Registry names no time after which an upload is forgotten; blobs that no manifest took are kept as long.
SESSION_SECONDS = 86400.0


class Image(NamedTuple):
    """An image's name: the repository's resource name, and the path below it."""

    repository: str
    path: str

    def key(self, sign: str, value: str = "") -> str:
        """Name of a row of this image; neither sign occurs in a path."""
        return f"{self.repository}/{self.path}{sign}{value}"


@dataclass(frozen=True)
class ImageStore:
    """Rows and files of all images."""

    store: Store
    blobs: BlobFiles

    def images(self, repository: str) -> list[str]:
        """Paths of the images of a repository that have a manifest."""
        start = len(repository) + 1
        return sorted({name[start:].partition("@")[0] for name, _ in self.store.rows(_MANIFEST, f"{repository}/")})

    def manifests(self, image: Image) -> list[tuple[str, Json]]:
        """(digest, row) of the manifests of an image."""
        prefix = image.key("@")
        return [(name[len(prefix) :], row) for name, row in self.store.rows(_MANIFEST, prefix)]

    def tags(self, image: Image) -> dict[str, str]:
        """Tag -> digest, in the order of the tags."""
        prefix = image.key(":")
        return {name[len(prefix) :]: row["digest"] for name, row in self.store.rows(_TAG, prefix)}

    def tags_of(self, image: Image, digest: str) -> list[str]:
        """The tags of one manifest."""
        return [tag for tag, tagged in self.tags(image).items() if tagged == digest]

    def resolve(self, image: Image, reference: str) -> tuple[str, Json] | None:
        """(digest, row) of a manifest by tag or digest."""
        digest = reference
        if not is_digest(reference):
            digest = (self.store.get(_TAG, image.key(":", reference)) or {}).get("digest", "")
        row = self.store.get(_MANIFEST, image.key("@", digest))
        return None if row is None else (digest, row)

    def content(self, digest: str) -> bytes:
        """Bytes of a manifest or a config."""
        return self.blobs.path(digest).read_bytes()

    def put(self, image: Image, manifest: Manifest, digest: str, tag: str, now: float, build_time: str = "") -> None:
        """Store a manifest under its digest, and a tag that points to it if one is given."""
        moment = timestamp(now)
        self.blobs.keep(manifest.content, digest)
        old = self.store.get(_MANIFEST, image.key("@", digest)) or {}
        row = {
            "mediaType": manifest.media_type,
            "size": len(manifest.content),
            "references": [part["digest"] for part in manifest.blobs],
            "children": manifest.children,
            "subject": manifest.subject,
            "artifactType": manifest.artifact_type,
            "annotations": manifest.body.get("annotations") or {},
            "imageSizeBytes": manifest.bytes_of_image,
            "uploadTime": old.get("uploadTime", moment),
            "updateTime": moment,
            "buildTime": build_time,
        }
        with self.store.transaction():
            self.store.put(_MANIFEST, image.key("@", digest), row)
            if tag:
                self.put_tag(image, tag, digest)

    def put_tag(self, image: Image, tag: str, digest: str) -> None:
        """Point a tag to a manifest."""
        self.store.put(_TAG, image.key(":", tag), {"digest": digest})

    def delete_tag(self, image: Image, tag: str) -> None:
        """Remove a tag; its manifest stays."""
        self.store.delete(_TAG, image.key(":", tag))

    def delete_manifest(self, image: Image, digest: str, now: float) -> None:
        """Remove a manifest with its tags, and the files that nothing needs any more.

        Raises:
            RegistryError: An index lists it, or another manifest names it as its subject.
        """
        for other, row in self.manifests(image):
            if any(child["digest"] == digest for child in row["children"]):
                text = f"Manifest is still referenced by one or more parent images: {other}"
                raise RegistryError("GOOGLE_MANIFEST_DANGLING_PARENT_IMAGE", text)
            if row["subject"] == digest and other != digest:
                text = f"Manifest is still referred to by one or more manifests: {other}"
                raise RegistryError("GOOGLE_MANIFEST_REFERRING_MANIFEST", text)
        with self.store.transaction():
            for tag in self.tags_of(image, digest):
                self.delete_tag(image, tag)
            self.store.delete(_MANIFEST, image.key("@", digest))
        self.collect(now)

    def drop_repository(self, repository: str) -> None:
        """Remove all images of a repository."""
        self._drop(f"{repository}/", f"{repository}/", f"{repository}/")

    def drop_image(self, image: Image) -> None:
        """Remove an image with all its manifests and tags."""
        self._drop(image.key("@"), image.key(":"), image.key("@"))

    def _drop(self, manifests: str, tags: str, links: str) -> None:
        with self.store.transaction():
            for kind, prefix in ((_MANIFEST, manifests), (_TAG, tags), (_LINK, links)):
                for name, _ in self.store.rows(kind, prefix):
                    self.store.delete(kind, name)
        self.blobs.sweep(self._used())

    def has_blob(self, image: Image, digest: str) -> bool:
        """Whether an image has a blob."""
        return self.store.get(_LINK, image.key("@", digest)) is not None

    def link(self, image: Image, digest: str, size: int, now: float) -> None:
        """Record that an image has a blob whose file is in place."""
        self.store.put(_LINK, image.key("@", digest), {"size": size, "time": now})

    def unlink(self, image: Image, digest: str) -> None:
        """Take a blob from an image."""
        self.store.delete(_LINK, image.key("@", digest))
        self.blobs.sweep(self._used())

    def blob_size(self, digest: str) -> int:
        """Size of a blob's file."""
        return self.blobs.path(digest).stat().st_size

    def owners(self, digest: str) -> Iterator[str]:
        """Repositories that have a blob in some image."""
        for name, _ in self.store.rows(_LINK):
            if name.endswith(f"@{digest}"):
                yield "/".join(name.split("/")[:6])

    def links(self, repository: str) -> dict[str, Json]:
        """Blobs of a repository by digest; one that several images have is there once."""
        return {name.rpartition("@")[2]: row for name, row in self.store.rows(_LINK, f"{repository}/")}

    def referrers(self, image: Image, digest: str) -> list[Json]:
        """Descriptors of the manifests whose subject is a digest."""
        return [
            {"mediaType": row["mediaType"], "digest": name, "size": row["size"]}
            | {field: row[field] for field in ("artifactType", "annotations") if row[field]}
            for name, row in self.manifests(image)
            if row["subject"] == digest
        ]

    def collect(self, now: float) -> None:
        """Remove blobs that no manifest of their image refers to, unless they were pushed within the last day."""
        needed: dict[str, set[str]] = {}
        for name, row in self.store.rows(_MANIFEST):
            needed.setdefault(name.rpartition("@")[0], set()).update(row["references"])
        with self.store.transaction():
            for name, row in self.store.rows(_LINK):
                image, _, digest = name.rpartition("@")
                if row["time"] < now - SESSION_SECONDS and digest not in needed.get(image, ()):
                    self.store.delete(_LINK, name)
        self.blobs.sweep(self._used())

    def forget_uploads(self, now: float) -> None:
        """Forget the uploads that were opened more than a day ago."""
        for upload, row in self.store.rows(UPLOAD):
            if row["opened"] < now - SESSION_SECONDS:
                self.store.delete(UPLOAD, upload)
                self.blobs.discard(upload)

    def recover(self, now: float) -> None:
        """After a start: forget old uploads, and remove files without a row and rows without a file."""
        self.forget_uploads(now)
        for kind in (_MANIFEST, _LINK):
            for name, _ in self.store.rows(kind):
                if not self.blobs.path(name.rpartition("@")[2]).exists():
                    self.store.delete(kind, name)
        self.blobs.recover({name for name, _ in self.store.rows(UPLOAD)}, self._used())

    def _used(self) -> set[str]:
        return {name.rpartition("@")[2] for kind in (_MANIFEST, _LINK) for name, _ in self.store.rows(kind)}
