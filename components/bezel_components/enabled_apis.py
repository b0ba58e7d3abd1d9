"""Google APIs that a stack needs, enabled in its project.

Enables and never disables: other stacks of the same project may use the same APIs, so a destroy leaves them enabled (an
enabled API costs nothing by itself).

Example:
    ```python
    apis = EnabledApis("apis", EnabledApisArgs(project="acme-llm", services=("run.googleapis.com",)))
    ```
"""

import pulumi
from pulumi_gcp.projects import Service

from bezel_components.base.arguments import ComponentArgs, child_options


class EnabledApisArgs(ComponentArgs):
    """Arguments of `EnabledApis`."""

    project: str
    services: tuple[str, ...]
    """Service names, e.g. `run.googleapis.com`."""


class EnabledApis(pulumi.ComponentResource):
    """Enables APIs; make what calls them depend on this component.

    Attributes:
        services: The names of the enabled services.
    """

    def __init__(self, name: str, args: EnabledApisArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:project:EnabledApis", name, None, opts)
        for service in args.services:
            Service(
                f"{name}-{service.removesuffix('.googleapis.com')}",
                project=args.project,
                service=service,
                disable_on_destroy=False,
                opts=child_options(self, opts),
            )
        self.services = args.services
        self.register_outputs({"services": list(self.services)})
