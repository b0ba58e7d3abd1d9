"""Access to a stack's server as a caller has it now: at the address where it answers, else in the first region."""

from dataclasses import replace

from bezel.operations.address.reach import reach_of
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.deployment.server_access import ServerAccess, access_of


def reachable_access(context: Context, deployment: Deployment) -> ServerAccess:
    """The access to the server of a deployment; of one region alone, to its service.

    Raises:
        UserError: The deployment has no address.
    """
    address = deployment.address
    if address is None or deployment.region or deployment.url.rstrip("/") != address.url:
        return access_of(deployment)
    reach = reach_of(context, address, deployment.stack)
    if not reach.why:
        return replace(access_of(deployment), connect_to=reach.place)
    first = deployment.of_one_region(None)
    note = f"{address.url} does not answer: {reach.why}; the service in {first.region} is asked in its place"
    return replace(access_of(first), note=f"{note}; repair: {reach.repair}" if reach.repair else note)
