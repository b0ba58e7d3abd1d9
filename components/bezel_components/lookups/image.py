"""Lookup of an image's digest in its registry: a tag names whatever its owner last pushed, a digest one image.

Runs in previews too. Leaves out the repository that the image is pulled through (`ContainerImage`).
"""

import re

import pulumi
import pulumi_docker as docker

from bezel_base.errors import Problem, UserError

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class ImageNotFoundError(UserError, pulumi.RunError):
    """The registry returned no digest of the image; shown without a traceback."""

    problems: tuple[Problem, ...]


def look_up_digest(image: str, component: pulumi.Resource | None = None) -> str:
    """Return the digest of `REGISTRY/PATH:TAG`, e.g. `docker.io/vllm/vllm-openai:v0.32.0`.

    Args:
        image: Registry, path and tag.
        component: The resource whose provider asks; the program's default one without it.

    Raises:
        ImageNotFoundError: The registry was not reached, or has no such tag.
    """
    try:
        result = docker.get_registry_image(name=image, opts=pulumi.InvokeOptions(parent=component))
    except Exception as error:  # noqa: BLE001  the SDK raises bare exceptions for the plugin's errors
        raise _not_found(image, _registry_message(str(error))) from None
    digest = str(result.sha256_digest)
    if not _DIGEST.fullmatch(digest):
        raise _not_found(image, f"the registry returned the digest {digest!r}")
    return digest


def _registry_message(error: str) -> str:
    """The registry's own message, without the text that engine and plugin put around it."""
    return " ".join(error.rpartition("returned an error:")[2].replace("1 error occurred:", "").split()).strip("* .")


def _not_found(image: str, why: str) -> ImageNotFoundError:
    repository = image.rpartition(":")[0]
    return ImageNotFoundError(
        Problem(
            f"digest of {image}",
            "cannot be looked up",
            f"nothing is deployed, as a tag without a digest may later name another image: {why}.",
            f"use a tag that {repository} has; if the registry was not reachable, try again.",
        )
    )
