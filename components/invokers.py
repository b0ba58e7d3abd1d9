"""Invokers of a Cloud Run service: one IAM grant for each member, and everyone only where `public` is set.

Owns the members of `roles/run.invoker`. Leaves out the service, which the caller declares.
"""

from collections.abc import Iterable

import pulumi
from pulumi_gcp import cloudrunv2

from components.arguments import child_options

INVOKER = "roles/run.invoker"
EVERYONE = frozenset({"allUsers", "allAuthenticatedUsers"})
"""Members that stand for the whole internet; anyone can have a Google account."""


def check_public_only_when_said(invokers: Iterable[str], *, public: bool) -> None:
    """Refuse members that stand for the whole internet unless `public` is set.

    Raises:
        ValueError: The text says what to do.
    """
    everyone = sorted(EVERYONE.intersection(invokers))
    if everyone and not public:
        raise ValueError(
            f"invokers holds {', '.join(everyone)}, so anybody could use the accelerator at your cost; name the"
            " callers, or say public=True if that is what you want"
        )


def allow(
    component: pulumi.Resource,
    opts: pulumi.ResourceOptions | None,
    service: cloudrunv2.Service,
    *,
    names: tuple[str, str, str, str],
    invokers: Iterable[str],
    public: bool,
) -> None:
    """Grant members the right to call a service; each resource is named after its member.

    Args:
        component: Parent of the resources.
        opts: Options that the component was made with.
        service: The service.
        names: The component's name, then project, location and name of the service.
        invokers: Members, e.g. `serviceAccount:app@acme.iam.gserviceaccount.com`.
        public: Whether anyone may call it.
    """
    name, project, location, service_name = names
    members = sorted(set(invokers) - EVERYONE)
    if public:
        members += sorted(EVERYONE.intersection(invokers)) or ["allUsers"]
    for member in members:
        cloudrunv2.ServiceIamMember(
            f"{name}-invoker-{member}",
            project=project,
            location=location,
            name=service_name,
            role=INVOKER,
            member=member,
            opts=child_options(component, opts, depends_on=[service]),
        )
