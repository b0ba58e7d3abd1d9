"""Names and options of the direct children of a service's component."""

from dataclasses import dataclass

import pulumi

from bezel_components.base.arguments import child_options


@dataclass(frozen=True)
class Children:
    """The children of one component: two components of a program have no name in common.

    Attributes:
        component: The parent.
        name: Its name.
        opts: The options that it was made with.
    """

    component: pulumi.ComponentResource
    name: str
    opts: pulumi.ResourceOptions | None

    def name_of(self, role: str) -> str:
        """The name of the child with a role, e.g. `health`."""
        return f"{self.name}-{role}"

    def after(self, *earlier: pulumi.Resource) -> pulumi.ResourceOptions:
        """Options of a child that is created after others, and deleted before them."""
        return child_options(self.component, self.opts, depends_on=earlier)
