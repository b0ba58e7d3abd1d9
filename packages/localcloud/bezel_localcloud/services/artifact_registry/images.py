"""Catalogue of the upstream container images: manifests, configs and layers, made here from the catalogue's rows.

Names, tags, platforms and entrypoints are facts; the contents are not the published images'. A config has the
platform, the entrypoint and the layers' digests; its one layer is a tar file with a text that says so. All bytes follow
from the row alone, so that a digest is the hash of what a client pulls, and the same on every machine.
"""

import io
import json
import re
import struct
import tarfile
import tomllib
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bezel_localcloud.core.files.blobs import digest_of
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.services.artifact_registry.manifests import INDEX_TYPE, MANIFEST_TYPE, Manifest

_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
_CREATED = "1970-01-01T00:00:00Z"
_NOTE = "usr/share/doc/localcloud/image.txt"
_REFERENCE = re.compile(
    r"(?:(?P<registry>[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[0-9]+)?|localhost(?::[0-9]+)?)/)?"
    r"(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


@dataclass(frozen=True)
class Reference:
    """Parts of an image reference; a digest takes precedence over a tag."""

    registry: str
    repository: str
    tag: str
    digest: str

    @property
    def version(self) -> str:
        """Digest or tag by which the manifest is requested."""
        return self.digest or self.tag


def parse_reference(text: str) -> Reference | None:
    """The parts of a reference as containers write it, or None for text that is not a reference."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        return None
    registry, repository = match["registry"] or "docker.io", match["repository"]
    if registry == "docker.io" and "/" not in repository:
        repository = f"library/{repository}"
    return Reference(registry, repository, match["tag"] or "latest", match["digest"] or "")


@dataclass(frozen=True)
class UpstreamImage:
    """Everything below one name of an upstream registry.

    Attributes:
        tags: Tag -> manifest.
        manifests: Digest -> manifest.
        blobs: Digest -> bytes of a config or a layer.
    """

    tags: dict[str, Manifest] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)


@cache
def _table() -> list[Json]:
    rows: list[Json] = tomllib.loads((Path(__file__).parents[2] / "data" / "images.toml").read_text(encoding="utf-8"))[
        "image"
    ]
    return rows


@cache
def _upstream() -> dict[tuple[str, str], UpstreamImage]:
    images: dict[tuple[str, str], UpstreamImage] = {}
    for row in _table():
        image = images.setdefault((row["registry"], row["repository"]), UpstreamImage())
        index = _manifest(INDEX_TYPE, {"manifests": [_child(image, row, platform) for platform in row["platforms"]]})
        image.manifests[index.digest] = image.tags[row["tag"]] = index
    return images


def upstream_image(registry: str, repository: str) -> UpstreamImage | None:
    """The tags and contents of an upstream name, if it exists."""
    return _upstream().get((registry, repository))


def published_manifest(registry: str, repository: str, digest: str) -> Manifest | None:
    """The manifest that stands here for the one with a published digest, for what only looks an image up."""
    rows = (row for row in _table() if (row["registry"], row["repository"]) == (registry, repository))
    tag = next((row["tag"] for row in rows if digest and row.get("published") == digest), "")
    return upstream_manifest(registry, repository, tag)


def upstream_manifest(registry: str, repository: str, version: str) -> Manifest | None:
    """The manifest of an image by tag or digest, if it exists."""
    image = upstream_image(registry, repository)
    return None if image is None else image.tags.get(version) or image.manifests.get(version)


@cache
def _tags_of_parts() -> dict[str, str]:
    tags: dict[str, str] = {}
    for image in _upstream().values():
        for tag, index in image.tags.items():
            tags[index.digest] = tag
            for child in index.children:
                layers = image.manifests[child["digest"]].body["layers"]
                tags |= {child["digest"]: tag, **{layer["digest"]: tag for layer in layers}}
    return tags


def upstream_tag(digest: str) -> str:
    """The tag of an upstream image by the digest of a manifest or a layer of it, "" if no image has that."""
    return _tags_of_parts().get(digest, "")


def programs() -> frozenset[str]:
    """Programs of this machine that stand for images."""
    return frozenset(row["runs"] for row in _table() if "runs" in row)


def program_of(image: str) -> str:
    """The program that stands for an image of the catalogue, also behind a remote repository; "" for a vLLM image."""
    reference = parse_reference(image)
    repository = f"/{reference.repository}" if reference else ""
    runs = (row["runs"] for row in _table() if "runs" in row and repository.endswith(f"/{row['repository']}"))
    return next(runs, "")


def collector_of(image: str) -> str:
    """Which collector of series an image is, a part of the daemon here: "sidecar", "machine", or "" for none."""
    reference = parse_reference(image)
    repository = reference.repository if reference else ""
    rows = (row for row in _table() if "collector" in row and repository.endswith(row["repository"]))
    return next((row["collector"] for row in rows), "")


def _child(image: UpstreamImage, row: Json, platform: str) -> Json:
    """Make the manifest of one platform and return its descriptor in the index."""
    system, architecture = platform.split("/")
    files = _files(f"{row['registry']}/{row['repository']}:{row['tag']} {platform}")
    body = {
        "created": _CREATED,
        "architecture": architecture,
        "os": system,
        "config": {"Entrypoint": row["entrypoint"]} | ({"Cmd": row["cmd"]} if "cmd" in row else {}),
        "rootfs": {"type": "layers", "diff_ids": [digest_of(files)]},
        "history": [{"created": _CREATED, "created_by": "localcloud"}],
    }
    config, layer = _bytes(body), _gzip(files)
    image.blobs.update({digest_of(content): content for content in (config, layer)})
    parts = {"config": _descriptor(_CONFIG_TYPE, config), "layers": [_descriptor(_LAYER_TYPE, layer)]}
    manifest = _manifest(MANIFEST_TYPE, parts)
    image.manifests[manifest.digest] = manifest
    named = {"platform": {"architecture": architecture, "os": system}}
    return _descriptor(MANIFEST_TYPE, manifest.content) | named


def _files(image: str) -> bytes:
    """The uncompressed layer."""
    text = (
        f"{image}\nMade by localcloud: the published image's files are not in it. localcloud runs a program instead.\n"
    )
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        entry = tarfile.TarInfo(_NOTE)  # owner root, time 0, mode 0644
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def _gzip(content: bytes) -> bytes:
    """A gzip file with one stored block: the bytes of a compressed one would depend on the machine's zlib."""
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    block = b"\x01" + struct.pack("<HH", len(content), len(content) ^ 0xFFFF) + content
    return head + block + struct.pack("<II", zlib.crc32(content), len(content))


def _manifest(media_type: str, parts: Json) -> Manifest:
    body = {"schemaVersion": 2, "mediaType": media_type} | parts
    return Manifest(_bytes(body), media_type, body)


def _descriptor(media_type: str, content: bytes) -> Json:
    return {"mediaType": media_type, "digest": digest_of(content), "size": len(content)}


def _bytes(body: Json) -> bytes:
    return json.dumps(body, indent=2).encode()
