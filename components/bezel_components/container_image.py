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

from collections.abc import Mapping

import pulumi
from pulumi_gcp import artifactregistry
from pydantic import Field

from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.base.granted_roles import REPOSITORY_READER
from bezel_components.lookups.image import look_up_digest


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
    """`sha256:…`; with it the tag is not looked up, and serves only as documentation. `VllmService` has looked it up
    for its plan."""
    readers: tuple[str, ...] = ()
    """E-mail addresses of the service accounts that pull it themselves; Cloud Run pulls by its own agent, and
    `LeasedVllmService` names the account of its machines."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Labels of the repository; `VllmService` adds its stack, environment and model."""


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
        self.digest = args.digest or look_up_digest(f"{args.registry}/{args.image}:{args.tag}", self)
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


def _upstream(registry: str) -> artifactregistry.RepositoryRemoteRepositoryConfigArgs:
    docker_repository = artifactregistry.RepositoryRemoteRepositoryConfigDockerRepositoryArgs
    custom = artifactregistry.RepositoryRemoteRepositoryConfigDockerRepositoryCustomRepositoryArgs
    source = (
        docker_repository(public_repository="DOCKER_HUB")
        if registry == "docker.io"
        else docker_repository(custom_repository=custom(uri=f"https://{registry}"))
    )
    return artifactregistry.RepositoryRemoteRepositoryConfigArgs(description=registry, docker_repository=source)
