"""Container image by digest, pulled through the project's own registry.

A tag names whatever its owner last pushed; a digest names one image. So the tag is looked up at each preview, and
only its digest is deployed: a moved tag shows as a change in the preview. The pull goes through a remote repository of
Artifact Registry, which keeps a copy in the region: a cold start neither waits for Docker Hub nor meets its limits.

Owns the repository, its readers and the reference. Leaves out what the container runs (`VllmContainer`).

Example:
    ```python
    image = ContainerImage(
        "image",
        ContainerImageArgs(project="acme-llm", location="us-east4", repository_id="docker-hub",
                           image="vllm/vllm-openai", tag="v0.32.0"),
    )
    pulumi.export("image", image.reference)
    ```
"""

import re
from collections.abc import Mapping

import pulumi
import pulumi_docker as docker
from pulumi_gcp import artifactregistry
from pydantic import Field

from bezel_base.errors import Problem, UserError
from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.base.granted_roles import REPOSITORY_READER

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class ContainerImageArgs(ComponentArgs):
    """Arguments of `ContainerImage`."""

    project: str
    location: str
    """Region of the repository; the region of what runs the image."""
    repository_id: str
    registry: str = "docker.io"
    image: str
    """Path of the image in its registry, e.g. `vllm/vllm-openai`."""
    tag: str
    digest: str = Field("", pattern="^(sha256:[0-9a-f]{64})?$")
    """`sha256:…`; with it the tag is not looked up, and serves only as documentation."""
    readers: tuple[str, ...] = ()
    """E-mail addresses of the service accounts that pull it themselves; Cloud Run pulls by its own agent."""
    labels: Mapping[str, str] = Field(default_factory=dict)


class ImageNotFoundError(UserError, pulumi.RunError):
    """The registry returned no digest of the image; shown without a traceback."""


class ContainerImage(pulumi.ComponentResource):
    """An image in a pull-through repository; make what runs it depend on this component.

    Attributes:
        digest: `sha256:…` from the upstream registry at the moment, or from the arguments.
        reference: `REGION-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE@DIGEST`, known in every preview.

    Raises:
        ImageNotFoundError: The tag could not be looked up; the program ends with that text and no traceback.
    """

    def __init__(self, name: str, args: ContainerImageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:registry:ContainerImage", name, None, opts)
        self.digest = args.digest or _look_up(f"{args.registry}/{args.image}:{args.tag}", self)
        repository = artifactregistry.Repository(
            f"{name}-repository",
            project=args.project,
            location=args.location,
            repository_id=args.repository_id,
            description=f"Pulls {args.registry} through",
            format="DOCKER",
            mode="REMOTE_REPOSITORY",
            remote_repository_config=_upstream(args.registry),
            labels=dict(args.labels),
            opts=child_options(self, opts),
        )
        for reader in args.readers:
            artifactregistry.RepositoryIamMember(
                f"{name}-reader-{reader.partition('@')[0]}",
                project=args.project,
                location=args.location,
                repository=args.repository_id,
                role=REPOSITORY_READER,
                member=f"serviceAccount:{reader}",
                opts=child_options(self, opts, depends_on=[repository]),
            )
        home = f"{args.location}-docker.pkg.dev/{args.project.replace(':', '/')}/{args.repository_id}"
        self.reference = f"{home}/{args.image}@{self.digest}"
        self.register_outputs({"digest": self.digest, "reference": self.reference})


def _look_up(image: str, component: pulumi.Resource) -> str:
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


def _upstream(registry: str) -> artifactregistry.RepositoryRemoteRepositoryConfigArgs:
    docker_repository = artifactregistry.RepositoryRemoteRepositoryConfigDockerRepositoryArgs
    custom = artifactregistry.RepositoryRemoteRepositoryConfigDockerRepositoryCustomRepositoryArgs
    source = (
        docker_repository(public_repository="DOCKER_HUB")
        if registry == "docker.io"
        else docker_repository(custom_repository=custom(uri=f"https://{registry}"))
    )
    return artifactregistry.RepositoryRemoteRepositoryConfigArgs(description=registry, docker_repository=source)
