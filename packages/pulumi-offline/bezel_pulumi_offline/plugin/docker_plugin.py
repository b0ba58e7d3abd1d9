"""Plugin of the `docker` stand-in: the digest of a tag, from localcloud's registry.

It has one look-up, docker:index/getRegistryImage:getRegistryImage, and no resources. The request is the one that
containerd sends to a mirror: `HEAD /v2/<repository>/manifests/<tag>?ns=<registry>` (its hosts.toml documentation).
"""

import http.client
import os
import re
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from pulumi.runtime.proto import provider_pb2 as pb

from bezel_pulumi_offline.google.errors import ProviderError
from bezel_pulumi_offline.lifecycle.values import decode
from bezel_pulumi_offline.plugin.server import Context, Plugin, invoke_response, refuse

_LOOK_UP = "docker:index/getRegistryImage:getRegistryImage"
_KINDS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Reference:
    """An image reference in its parts: docker.io, library/alpine, latest for `alpine`."""

    registry: str
    repository: str
    tag: str


def parse_reference(name: str) -> Reference:
    """Parse an image reference, with Docker's defaults.

    Raises:
        ProviderError: The text is not an image reference.
    """
    first, slash, rest = name.partition("/")
    elsewhere = bool(slash) and ("." in first or ":" in first or first == "localhost")
    registry, path = (first, rest) if elsewhere else ("docker.io", name)
    path, _, digest = path.partition("@")
    repository, _, tag = path.partition(":")
    if registry == "docker.io" and "/" not in repository:
        repository = f"library/{repository}"
    if not re.fullmatch(r"[a-z0-9]+([._/-]+[a-z0-9]+)*", repository):
        raise ProviderError(f"{name!r} is not an image reference. Write it like docker.io/vllm/vllm-openai:v0.32.0.")
    return Reference(registry, repository, digest or tag or "latest")


def digest_of(name: str, endpoint: str) -> str:
    """Return the digest that a registry has for an image.

    Args:
        name: The image, e.g. docker.io/vllm/vllm-openai:v0.32.0.
        endpoint: localcloud's base address.

    Raises:
        ProviderError: There is no such image, no endpoint is set, or the registry does not respond.
    """
    if not endpoint:
        raise ProviderError(
            f"BEZEL_REGISTRY_ENDPOINT is not set, so the digest of {name} cannot be looked up. "
            "`make up` sets it; with PROVIDER=real the published plugin asks the registry itself."
        )
    reference = parse_reference(name)
    address = urlsplit(endpoint)
    path = f"/v2/{reference.repository}/manifests/{reference.tag}?{urlencode({'ns': reference.registry})}"
    connection = http.client.HTTPConnection(address.netloc, timeout=_TIMEOUT)
    try:
        connection.request("HEAD", path, headers={"Accept": ", ".join(_KINDS)})
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException) as error:
        raise ProviderError(
            f"The registry at {endpoint} does not respond ({type(error).__name__}). Is localcloud running? "
            "`make up` starts it."
        ) from None
    finally:
        connection.close()
    digest = response.headers.get("Docker-Content-Digest", "")
    if response.status == 404:
        raise ProviderError(
            f"{reference.registry} has no image {reference.repository}:{reference.tag}, so no service could start it. "
            "Check the repository and the tag."
        )
    if response.status != 200 or not digest:
        raise ProviderError(f"The registry refused to show {name} (HTTP {response.status}).")
    return digest


class DockerPlugin(Plugin):
    """pulumirpc.ResourceProvider with one look-up."""

    sdk = "pulumi_docker"

    def Configure(self, request: pb.ConfigureRequest, context: Context) -> pb.ConfigureResponse:
        """Accept any configuration: the registry comes from the environment."""
        del request, context
        return pb.ConfigureResponse(supportsPreview=True)

    def Check(self, request: pb.CheckRequest, context: Context) -> pb.CheckResponse:
        """Refuse every resource: there are none."""
        token = request.urn.split("::")[2].rsplit("$", 1)[-1]
        refuse(
            context,
            f"The stand-in provider has no resource type {token}; for docker it has the look-up getRegistryImage only. "
            "Use that, or run with PROVIDER=real.",
        )

    def Invoke(self, request: pb.InvokeRequest, context: Context) -> pb.InvokeResponse:
        """Look up an image's digest."""
        if request.tok != _LOOK_UP:
            refuse(context, f"The stand-in provider has no look-up {request.tok}; for docker it has {_LOOK_UP} only.")
        arguments = decode(request.args)
        name = str(arguments.get("name") or "")
        try:
            digest = digest_of(name, os.environ.get("BEZEL_REGISTRY_ENDPOINT", ""))
        except ProviderError as error:
            refuse(context, f"invoking {request.tok}: {error}")
        result = {
            "id": digest,
            "name": name,
            "sha256Digest": digest,
            "insecureSkipVerify": bool(arguments.get("insecureSkipVerify")),
        }
        return invoke_response(result)
