"""Fallback of leased machines while it serves: its path at the gateway, and what is read there in the lease's place.

The gateway has no `/metrics` of its own: without a path they are those of a node, also while none lives.
"""

from dataclasses import dataclass

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedService, Deployment
from bezel.operations.status.status import lease_status, may_serve

PATH = "/fallback"
"""Below it, the gateway sends to the fallback alone (`bezel_components.config.gateway_fallback`)."""


@dataclass(frozen=True)
class ServingFallback:
    """The fallback of a stack, which serves in its leases' place.

    Attributes:
        service: Its service behind the gateway.
    """

    service: DeployedService

    @property
    def note(self) -> str:
        """What is read in the lease's place."""
        return f"no lease serves: of the fallback {self.service.name}, at {PATH} of the address"


def serving_fallback(context: Context, deployment: Deployment) -> ServingFallback | None:
    """The fallback of a stack, by the rule of its status; None without one, and while a lease serves.

    Raises:
        RestError: Google could not be asked.
    """
    fallback = deployment.fallback
    if fallback is None or any(may_serve(lease_status(context, lease)) for lease in deployment.leases):
        return None
    return ServingFallback(fallback)
