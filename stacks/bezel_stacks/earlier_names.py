"""Names that the resources of a stack had before it became one component.

A state of that time holds them at the top, without the component's name: `service`, now `vllm-service` below `vllm`.
An alias says that they are the same, so that an update moves them and replaces none; the children of each inherit it.
Only the program at the top passes this on: in another program there is no such state, and an alias could name one of
its own resources.
"""

import pulumi


def with_earlier_name(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """Give a direct child of a service's component its earlier name as an alias."""
    parent = args.opts.parent
    if parent is None or not parent.pulumi_resource_type.startswith("bezel:services:"):
        return None
    earlier = args.name.removeprefix(f"{parent.pulumi_resource_name}-")
    alias = pulumi.Alias(name=earlier, parent=pulumi.ROOT_STACK_RESOURCE)
    opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(aliases=[alias]))
    return pulumi.ResourceTransformationResult(args.props, opts)
