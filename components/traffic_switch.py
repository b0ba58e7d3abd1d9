"""Moves the traffic of a Cloud Run service to its newest revision, as the last step of a gated rollout.

Make it depend on whatever has to hold first: as long as that fails, what served before goes on serving. Traffic that
somebody moved by hand is a difference in the next preview, and moved back by the next deploy. Owns the traffic after
the update of the service; what it is during the update the service itself declares (`CloudRunGpuService`, `gated`).
How it moves is `traffic_switch_provider`'s.

Example:
    ```python
    TrafficSwitch(
        "traffic",
        TrafficSwitchArgs(service=service.resource_name, revision=service.created_revision),
        opts=pulumi.ResourceOptions(depends_on=[service]),  # better: whatever has checked it
    )
    ```
"""

import pulumi
from pulumi.dynamic import Resource

from components.arguments import ComponentArgs, Text
from components.providers.traffic_switch import TrafficSwitchProvider


class TrafficSwitchArgs(ComponentArgs):
    """Arguments of `TrafficSwitch`."""

    service: str
    """`projects/P/locations/L/services/S`."""
    revision: Text
    """Name of the revision that is to serve: the newest one."""
    deadline_seconds: float = 300.0
    """How long the platform may take to move it."""


class TrafficSwitch(Resource, module="components", name="TrafficSwitch"):
    """The traffic of a service, at the revision that was checked.

    Attributes:
        revision: Name of the revision that serves, once it does.
        serving: Short name of each revision with traffic -> its percent.
    """

    revision: pulumi.Output[str]
    serving: pulumi.Output[dict[str, float]]

    def __init__(self, name: str, args: TrafficSwitchArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {
            "service": args.service,
            "revision": args.revision,
            "deadline_seconds": args.deadline_seconds,
            "serving": None,
        }
        super().__init__(TrafficSwitchProvider(), name, props, opts)
