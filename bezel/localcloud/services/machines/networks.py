"""Checks of a machine's network and account, which both APIs make before they accept a request."""

from bezel.localcloud.core.errors import ApiError, invalid, permission_denied
from bezel.localcloud.core.paths import DEFAULT_COMPUTE_ACCOUNT, PROJECT
from bezel.localcloud.routing.router import Call
from bezel.localcloud.services.compute.links import region_of


def subnetwork_of(call: Call, network: str, subnetwork: str, region: str) -> str:
    """Return the subnetwork of a machine, `projects/P/regions/R/subnetworks/S`.

    Args:
        call: Gives the store and the caller's permissions.
        network: Name of the network, "" if only the subnetwork is given.
        subnetwork: Name of the subnetwork, "" if only the network is given.
        region: Region of the machine's zone.

    Raises:
        ApiError: NOT_FOUND for an unknown network or subnetwork, INVALID_ARGUMENT for a pair that does not fit,
            PERMISSION_DENIED.
    """
    store = call.cloud.store
    if not subnetwork:
        network = network or f"projects/{PROJECT}/global/networks/default"
        here = store.rows("subnetwork", f"projects/{PROJECT}/regions/{region}/subnetworks/")
        subnetwork = next((name for name, body in here if body["network"] == network), "")
        if not subnetwork:
            missing = network if store.get("network", network) is None else f"{network} (a subnetwork in {region})"
            raise ApiError("NOT_FOUND", f"The resource '{missing}' was not found")
    found = store.get("subnetwork", subnetwork)
    if found is None:
        raise ApiError("NOT_FOUND", f"The resource '{subnetwork}' was not found")
    if region_of(subnetwork) != region or network not in {"", found["network"]}:
        text = f"The subnetwork '{subnetwork}' is not in region {region} of network '{network or found['network']}'."
        raise invalid(text, ("subnetwork", "does not fit zone and network"))
    if not call.cloud.access.allows(call.caller, "compute.subnetworks.use", f"projects/{PROJECT}"):
        raise permission_denied("compute.subnetworks.use", subnetwork)
    return subnetwork


def account_of(call: Call, email: str) -> str:
    """Return the account that a machine runs as.

    Raises:
        ApiError: PERMISSION_DENIED for one that does not exist or that the caller may not act as.
    """
    email = DEFAULT_COMPUTE_ACCOUNT if email in {"", "default"} else email
    name = f"projects/{PROJECT}/serviceAccounts/{email}"
    exists = call.cloud.store.get("account", email) is not None
    if not exists or not call.cloud.access.allows(call.caller, "iam.serviceAccounts.actAs", name):
        raise permission_denied("iam.serviceAccounts.actAs", f"service account {email}")
    return email
