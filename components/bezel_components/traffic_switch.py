"""Move of a Cloud Run service's traffic to its newest revision: last step of a gated rollout, and of a rollback's end.

Make it depend on the checks that have to pass first: as long as they fail, the previous revision serves. Traffic that
was moved by hand is a difference in the next preview, and moved back by the next deploy. Owns the traffic after the
update of the service; the service itself declares the traffic during the update (`CloudRunGpuService`, `gated`). Leaves
the requests to `bezel_components.providers.traffic_switch`.

Example:
    ```python
    TrafficSwitch(
        "traffic",
        TrafficSwitchArgs(service=service.resource_name, revision=service.created_revision),
        opts=pulumi.ResourceOptions(depends_on=[service]),  # better: the resource that checked it
    )
    ```
"""

import pulumi

from bezel_components.base.arguments import ComponentArgs, Text
from bezel_components.base.check_resource import CheckResource
from bezel_components.providers.traffic_switch import TrafficSwitchProvider


class TrafficSwitchArgs(ComponentArgs):
    """Arguments of `TrafficSwitch`."""

    service: str
    """`projects/P/locations/L/services/S`."""
    revision: Text
    """Name of the revision to serve: the newest one."""
    template: Text | None = None
    """A fingerprint of the declared template of the revisions: a change of it shows already in the preview, in which
    the provider still has the old revision. `VllmService` writes that of its service, which only it knows."""
    newest: bool = False
    """Whether the traffic goes to the newest revision without its name, as in a direct rollout: after a rollback."""
    deadline_seconds: float = 300.0
    """Time limit for the platform to move it."""


class TrafficSwitch(CheckResource, module="components", name="TrafficSwitch"):
    """The traffic of a service, moved to the checked revision.

    Attributes:
        revision: Name of the serving revision, once it serves.
        serving: Short name of each revision with traffic -> its percent.
    """

    revision: pulumi.Output[str]
    serving: pulumi.Output[dict[str, float]]

    def __init__(self, name: str, args: TrafficSwitchArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {
            "service": args.service,
            "revision": args.revision,
            "template": args.template,
            "newest": args.newest or None,
            "deadline_seconds": args.deadline_seconds,
            "serving": None,
        }
        super().__init__(TrafficSwitchProvider(), name, props, opts)
