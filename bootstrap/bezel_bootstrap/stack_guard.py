"""Guard of the state bucket: a destroy of the foundation fails while the bucket holds the state of another stack.

`StackGuard` makes nothing. It depends on everything else, so it is deleted first, and its deletion lists the bucket: a
refusal comes before anything is gone. Leaves the listing to `bezel_bootstrap.providers.stack_guard`.

Example:
    ```python
    StackGuard("guard", StackGuardArgs(bucket="acme-llm-pulumi-state"), opts=pulumi.ResourceOptions(depends_on=[...]))
    ```
"""

import pulumi
from pulumi.dynamic import Resource

from bezel_bootstrap.providers.stack_guard import StackGuardProvider
from bezel_components.base.arguments import ComponentArgs


class StackGuardArgs(ComponentArgs):
    """Arguments of `StackGuard`."""

    bucket: str
    """The state bucket."""


class StackGuard(Resource, module="bootstrap", name="StackGuard"):
    """The refusal of a destroy that would leave stacks without their states."""

    def __init__(self, name: str, args: StackGuardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {"bucket": args.bucket, "own": f"{pulumi.get_project()}/{pulumi.get_stack()}"}
        super().__init__(StackGuardProvider(), name, props, opts)
