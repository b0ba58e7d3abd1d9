"""Cloud Run service of a component: the common arguments, the service, and its invokers.

Owns the service's name, deadlines and replacement, and one IAM grant of `roles/run.invoker` for each member; everyone
may call it only where `public` is set. Leaves the revisions' template to the components.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pulumi
from pulumi_gcp import cloudrunv2
from pydantic import Field, model_validator

from bezel_components.base.arguments import ComponentArgs, Text, child_options
from bezel_components.base.granted_roles import INVOKER

EVERYONE = frozenset({"allUsers", "allAuthenticatedUsers"})
"""Members that stand for the whole internet; anyone can have a Google account."""

_AUDIENCE = re.compile(r"https://[a-z0-9.-]+")


class CloudRunServiceArgs(ComponentArgs):
    """Arguments that all components with a Cloud Run service have."""

    project: str
    location: str
    """Region of the service."""
    service: str
    """Name of the service: it becomes part of its URL."""
    image: Text
    """Reference of the image, by digest."""
    ingress: str = "INGRESS_TRAFFIC_ALL"
    """Allowed sources of requests; these still need an identity unless `public`."""
    invokers: tuple[str, ...] = ()
    """Members that may call it, e.g. `serviceAccount:caller@acme-llm.iam.gserviceaccount.com`."""
    public: bool = False
    """Whether anyone may call it without an identity."""
    audiences: tuple[str, ...] = ()
    """Audiences of identity tokens that it accepts beside its own URL, e.g. `https://llm.acme.example`: the `url` of a
    `GlobalAddress` in front of it. With any, a service of another name or region is made before the old one is
    deleted."""
    deletion_protection: bool = True
    """Whether deleting the service is refused: on, as a component knows no environment; `VllmService` has it off in
    `dev`."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Labels of the service and its revisions; `VllmService` adds its stack, environment and model."""

    @model_validator(mode="after")
    def _image_by_digest(self) -> Self:
        if isinstance(self.image, str) and "@sha256:" not in self.image:
            raise ValueError(
                f"image {self.image} has no digest, so the image that runs could change without a deploy; look up its"
                " tag with ContainerImage and pass its reference"
            )
        return self

    @model_validator(mode="after")
    def _everyone_only_if_public(self) -> Self:
        everyone = sorted(EVERYONE.intersection(self.invokers))
        if everyone and not self.public:
            raise ValueError(
                f"invokers contains {', '.join(everyone)}, so anyone could use the accelerator at your cost; list the"
                " callers, or set public=True if everyone is meant to call it"
            )
        return self

    @model_validator(mode="after")
    def _audiences_are_urls(self) -> Self:
        for audience in self.audiences:
            if not _AUDIENCE.fullmatch(audience):
                raise ValueError(
                    f"audiences contains {audience!r}, which no token of a client of that address names; write its"
                    " scheme and host alone, e.g. https://llm.acme.example"
                )
        return self

    @property
    def accepted_audiences(self) -> dict[str, list[str]]:
        """The service's input for them, left out where there are none."""
        return {"custom_audiences": list(self.audiences)} if self.audiences else {}

    @property
    def resource_name(self) -> str:
        """`projects/P/locations/L/services/S`."""
        return f"projects/{self.project}/locations/{self.location}/services/{self.service}"


def declare_service(
    component: pulumi.Resource,
    name: str,
    args: CloudRunServiceArgs,
    opts: pulumi.ResourceOptions | None,
    *,
    inputs: Mapping[str, Any],
    seconds: float,
    depends_on: Sequence[pulumi.Resource] = (),
    hooks: pulumi.ResourceHookBinding | None = None,
) -> cloudrunv2.Service:
    """Declare a service and its invokers; each grant is named after its member.

    Args:
        component: Parent of the resources.
        name: The component's name.
        args: The component's arguments.
        opts: Options that the component was made with.
        inputs: Further inputs of the service.
        seconds: Time limit of a create or an update.
        depends_on: Further dependencies of the service.
        hooks: Run around the operations on the service.
    """
    limit = f"{seconds:g}s"
    service = cloudrunv2.Service(
        f"{name}-service",
        project=args.project,
        location=args.location,
        name=args.service,
        deletion_protection=args.deletion_protection,
        **inputs,
        opts=child_options(
            component,
            opts,
            depends_on=depends_on,
            custom_timeouts=pulumi.CustomTimeouts(create=limit, update=limit),
            # A new name or region replaces it. Where an address leads to it, the old one serves until the balancer
            # has the new one; elsewhere it goes first, as the project's quota of GPUs may suffice for one only.
            delete_before_replace=not args.audiences,
            hooks=hooks,
        ),
    )
    members = sorted(set(args.invokers) - EVERYONE)
    if args.public:
        members += sorted(EVERYONE.intersection(args.invokers)) or ["allUsers"]
    for member in members:
        cloudrunv2.ServiceIamMember(
            f"{name}-invoker-{member}",
            project=args.project,
            location=args.location,
            name=args.service,
            role=INVOKER,
            member=member,
            opts=child_options(component, opts, depends_on=[service]),
        )
    return service
