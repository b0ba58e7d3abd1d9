"""vLLM release of a container's image: by its upstream image, by that on which it was built, or by its own tag.

Leaves out which releases can be simulated: the simulated server refuses one that is not recorded.
"""

import re

from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.artifact_registry.errors import RegistryError
from bezel_localcloud.services.artifact_registry.images import Reference, parse_reference, upstream_tag
from bezel_localcloud.services.artifact_registry.manifests import parse_manifest
from bezel_localcloud.services.artifact_registry.names import GOOGLE, RegistryTarget, images_of

# The tags of vLLM's images, also of candidates and with a suffix: v0.33.0, v0.34.0rc1, v0.33.0-cu130.
_RELEASE = re.compile(r"v?([0-9]+\.[0-9]+\.[0-9]+(?:\.?(?:rc|post)[0-9]+)?)(?:[-_.].+)?")


def release_of(cloud: Context, image: str) -> str:
    """Return the vLLM release of an image, e.g. "0.33.0"; "" where neither its contents nor its tags tell it.

    Args:
        cloud: Holds the images that were pushed.
        image: The reference in the container, by tag or by digest.
    """
    reference = parse_reference(image)
    if reference is None:
        return ""
    tags = [upstream_tag(reference.digest), *_pushed_tags(cloud, reference), "" if reference.digest else reference.tag]
    return next((match[1] for tag in tags if (match := _RELEASE.fullmatch(tag))), "")


def _pushed_tags(cloud: Context, reference: Reference) -> list[str]:
    """Tags that tell the release of a pushed image: of the upstream images with its layers, then its own."""
    if not reference.registry.endswith(GOOGLE):
        return []
    try:
        name = RegistryTarget(reference.registry, reference.repository, reference.repository).image
    except RegistryError:  # no path below a repository
        return []
    images = images_of(cloud)
    resolved = images.resolve(name, reference.version)
    if resolved is None:
        return []
    digests = [resolved[0], *(child["digest"] for child in resolved[1]["children"])]
    layers: list[str] = []
    for digest in digests:
        row = images.resolve(name, digest)
        if row is not None:
            manifest = parse_manifest(images.content(digest), row[1]["mediaType"])
            layers += [part["digest"] for part in manifest.blobs]
    return [*map(upstream_tag, [*digests, *layers]), *images.tags_of(name, resolved[0])]
