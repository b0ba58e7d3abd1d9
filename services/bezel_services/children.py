"""Names and options of the direct children of a service's component."""

from dataclasses import dataclass, replace
from typing import Any

import pulumi

from bezel_components.base.arguments import child_options


@dataclass(frozen=True)
class Children:
    """The children of one component: two components of a program have no name in common.

    Attributes:
        component: The parent.
        name: Its name.
        opts: The options that it was made with.
        region: The region whose children these are, where the component has several; "" for those of all regions, and
            where there is one.
    """

    component: pulumi.ComponentResource
    name: str
    opts: pulumi.ResourceOptions | None
    region: str = ""

    def of_region(self, region: str) -> "Children":
        """The children of one of several regions."""
        return replace(self, region=region)

    def of_part(self, part: str, *earlier: pulumi.Resource) -> "Children":
        """The children of a part of the component, which come after other resources."""
        opts = child_options(self.component, self.opts, depends_on=earlier)
        return replace(self, name=f"{self.name}-{part}", opts=opts)

    def name_of(self, role: str) -> str:
        """The name of the child with a role, e.g. `health`."""
        return regional_name(f"{self.name}-{role}", self.region)

    def after(self, *earlier: pulumi.Resource, **more: Any) -> pulumi.ResourceOptions:
        """Options of a child that is created after others, and deleted before them; `more` are further ones."""
        return child_options(self.component, self.opts, depends_on=earlier, **more)


def regional_name(name: str, region: str) -> str:
    """The name of a child in one of several regions; the same name where `region` is ""."""
    return f"{name}-{region}" if region else name
