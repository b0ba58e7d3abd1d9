"""Time limits of the operations on Google's resources, for every resource that has none of its own.

The provider tries a request that Google refuses for the moment again, silently, until the operation's limit: twenty
minutes by default, for each resource. What a stack needs beside its service is made in seconds to minutes. Leaves out
reads, whose limit is the provider's own (five and a half minutes, ten and a half for a policy), and operations whose
limit the provider ignores: it would say so in each preview.
"""

import pulumi

from bezel_services import environment

CHANGE_SECONDS = 600.0
"""Limit of a create or an update."""
DELETE_SECONDS = 1200.0
"""Limit of a delete, which may wait for the resources that still use the deleted one."""

_WITHOUT_LIMITS = ("IamMember", "IAMMember", "IAMCustomRole", ":RecordSet")
_LIMITED = {
    "gcp:serviceaccount/account:Account": ("create",),
    "gcp:storage/bucket:Bucket": ("create", "update"),
    "gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup": ("create", "delete"),
    "gcp:compute/managedSslCertificate:ManagedSslCertificate": ("create", "delete"),
}
_EACH = ("create", "update", "delete")


def limited_operations(type_: str) -> tuple[str, ...]:
    """Return the operations on a type of resources whose limit the provider does not ignore.

    Args:
        type_: Pulumi's token of the type.
    """
    if not type_.startswith("gcp:") or type_.endswith(_WITHOUT_LIMITS):
        return ()
    return _LIMITED.get(type_, _EACH)


def operation_limits() -> pulumi.ResourceTransformation:
    """Make the transformation that gives resources their limits; `BEZEL_DEADLINE_SECONDS` may lower them."""
    change, delete = f"{environment.deadline(CHANGE_SECONDS):g}s", f"{environment.deadline(DELETE_SECONDS):g}s"

    def with_limits(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        limits = {"create": change, "update": change, "delete": delete}
        limits = {name: limits[name] for name in limited_operations(args.type_)}
        if not limits:
            return None
        own_timeouts = args.opts.custom_timeouts
        timeouts = pulumi.CustomTimeouts(
            create=(own_timeouts and own_timeouts.create) or limits.get("create"),
            update=(own_timeouts and own_timeouts.update) or limits.get("update"),
            delete=(own_timeouts and own_timeouts.delete) or limits.get("delete"),
        )
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(custom_timeouts=timeouts))
        return pulumi.ResourceTransformationResult(args.props, opts)

    return with_limits
