"""Catalogue of the upstream container images, and the bytes of their manifests.

The manifests are made up and constant, so that a digest is a real digest: the hash of those bytes. They are not the
published images' digests.
"""

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bezel.localcloud.core.json_types import Json

INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_REFERENCE = re.compile(
    r"(?:(?P<registry>[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?|localhost(?::\d+)?)/)?"
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
class Manifest:
    """Bytes that a registry serves."""

    content: bytes
    media_type: str

    @property
    def digest(self) -> str:
        """sha256 of the bytes."""
        return "sha256:" + hashlib.sha256(self.content).hexdigest()


@cache
def _table() -> list[Json]:
    rows: list[Json] = tomllib.loads((Path(__file__).parents[2] / "data" / "images.toml").read_text())["image"]
    return rows


@cache
def _upstream() -> dict[tuple[str, str], dict[str, Manifest]]:
    known: dict[tuple[str, str], dict[str, Manifest]] = {}
    for row in _table():
        versions = known.setdefault((row["registry"], row["repository"]), {})
        index, parts = _manifests(row)
        versions[row["tag"]] = index
        versions |= {manifest.digest: manifest for manifest in (index, *parts)}
    return known


def upstream_manifest(registry: str, repository: str, version: str) -> Manifest | None:
    """The manifest of an image by tag or digest, if it exists."""
    return _upstream().get((registry, repository), {}).get(version)


def program_of(image: str) -> str:
    """The program of this machine that stands for an image, also behind a remote repository; "" for a vLLM image."""
    reference = parse_reference(image)
    repository = f"/{reference.repository}" if reference else ""
    runs = (row["runs"] for row in _table() if "runs" in row and repository.endswith(f"/{row['repository']}"))
    return next(runs, "")


def upstream_tags(registry: str, repository: str) -> list[str] | None:
    """Tags of a repository, or None if there is no such repository."""
    versions = _upstream().get((registry, repository))
    return None if versions is None else sorted(v for v in versions if not v.startswith("sha256:"))


def _manifests(row: Json) -> tuple[Manifest, list[Manifest]]:
    name = f"{row['repository']}:{row['tag']}"
    parts = []
    for platform in row["platforms"]:
        config = _blob(f"{name} {platform} config", 9_000)
        layers = [_blob(f"{name} {platform} layer {n}", 1_000_000 * (n + 1)) for n in range(3)]
        body = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": config | {"mediaType": "application/vnd.oci.image.config.v1+json"},
            "layers": [layer | {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip"} for layer in layers],
        }
        parts.append(Manifest(json.dumps(body, indent=2).encode(), MANIFEST_TYPE))
    entries = [
        {
            "mediaType": MANIFEST_TYPE,
            "digest": part.digest,
            "size": len(part.content),
            "platform": dict(zip(("os", "architecture"), platform.split("/"), strict=True)),
        }
        for part, platform in zip(parts, row["platforms"], strict=True)
    ]
    index = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": entries}
    return Manifest(json.dumps(index, indent=2).encode(), INDEX_TYPE), parts


def _blob(seed: str, size: int) -> Json:
    return {"digest": "sha256:" + hashlib.sha256(seed.encode()).hexdigest(), "size": size}
