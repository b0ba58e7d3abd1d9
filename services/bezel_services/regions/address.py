"""The one address in front of a service: the balancer that leads to it, and the audiences of its callers' tokens.

It is made after the last region has passed its checks, and its parts are replaced after that: a changed domain, name or
list of regions never leads to a service that is not there. A service accepts tokens for the address that the state has
too, so callers of a domain that is about to be replaced are let in until the balancer leaves it; the next deploy ends
that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi

from bezel.planner import AnyPlan
from bezel_services.children import Children
from bezel_services.regions.deployed import Deployed
from bezel_services.regions.failure import address_failure_hook

if TYPE_CHECKING:
    from bezel_components.global_address import GlobalAddress
    from bezel_smoke.address import AddressCheck


@dataclass(frozen=True)
class DeclaredAddress:
    """An address and its check.

    Attributes:
        address: The address.
        check: The check, whose verdict says why callers cannot connect yet.
    """

    address: "GlobalAddress"
    check: "AddressCheck"

    @property
    def url(self) -> str:
        """Its URL."""
        return self.address.url

    def as_output(self) -> dict[str, Any]:
        """The output `address` of a stack."""
        return {
            "domain": self.url.removeprefix("https://"),
            "ip": self.address.address,
            "records": self.address.records,
            "certificate": self.address.certificate,
            "check": self.check.verdict,
        }


def audiences(plan: AnyPlan, deployed: Deployed) -> tuple[str, ...]:
    """Audiences of the tokens that a service accepts beside its own URL; () without an address."""
    if plan.address is None:
        return ()
    former = deployed.address if deployed.address != plan.address.url else ""
    if former and pulumi.runtime.is_dry_run():
        pulumi.log.info(
            f"the address changes from {former} to {plan.address.url}: the balancer leaves {former} at the end of this"
            " deploy, and the next one ends that tokens for it are accepted."
        )
    return tuple(filter(None, (plan.address.url, former)))


def declare_drain(
    plan: AnyPlan, children: Children, service: str, labels: Mapping[str, str], *earlier: pulumi.Resource
) -> tuple[pulumi.Resource, ...]:
    """Declare the wait before a service behind the address is deleted; () without an address.

    Args:
        plan: Plan of the service.
        children: Children of its component, or those of a region.
        service: `projects/P/locations/L/services/S`.
        labels: Labels of the address.
        earlier: The service.
    """
    if plan.address is None:
        return ()
    from bezel_components.global_address import ServiceDrain, ServiceDrainArgs

    args = ServiceDrainArgs(project=plan.project, service=service, stack_label=labels["stack"])
    return (ServiceDrain(children.name_of("drain"), args, opts=children.after(*earlier)),)


def declare_address(
    plan: AnyPlan,
    children: Children,
    services: Mapping[str, str],
    labels: Mapping[str, str],
    *earlier: pulumi.Resource,
    revisions: Sequence[pulumi.Input[str]] = (),
) -> DeclaredAddress | None:
    """Declare the address, and its check; None where the plan has none.

    Args:
        plan: Plan of the service.
        children: Children of its component.
        services: Region -> name of the Cloud Run service there.
        labels: Labels of the address.
        earlier: What has to be there first.
        revisions: Revisions behind the address, which the check follows.
    """
    if plan.address is None:
        return None
    from bezel_components.global_address import GlobalAddress, GlobalAddressArgs
    from bezel_smoke.address import AddressCheck, AddressCheckArgs

    args = GlobalAddressArgs(
        project=plan.project, domain=plan.address.domain, services=services, zone=plan.address.zone, labels=labels
    )
    name = children.name_of("address")
    hook = address_failure_hook(f"{name}-explain-failure", plan.address, plan.project)
    opts = pulumi.ResourceOptions.merge(
        children.after(*earlier), pulumi.ResourceOptions(transformations=[_with_hook(hook)])
    )
    address = GlobalAddress(name, args, opts=opts)
    check = AddressCheck(
        children.name_of("address-check"),
        AddressCheckArgs(
            url=address.url,
            ip=address.address,
            revisions=list(revisions),
            served_model=plan.served_model,
            public=plan.settings.access.public,
            impersonate=plan.smoke.impersonate,
        ),
        opts=children.after(address),
    )
    return DeclaredAddress(address, check)


def _with_hook(hook: pulumi.ErrorHook) -> pulumi.ResourceTransformation:
    """Make the transformation that has a component's children call a hook where they fail."""

    def add_hook(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
        hooks = pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(on_error=[hook]))
        return pulumi.ResourceTransformationResult(args.props, pulumi.ResourceOptions.merge(args.opts, hooks))

    return add_hook
