"""Lookup of a subnetwork before anything is declared. Reads only, within seconds, in previews too."""

from typing import Any

from bezel.rest import ApiError, GoogleClient, endpoint

_SECONDS = 10.0


def look_up_subnetwork(name: str) -> dict[str, Any] | None:
    """The subnetwork in Compute Engine's description, None where there is none.

    Args:
        name: `projects/P/regions/R/subnetworks/S`.

    Raises:
        RestError: The subnetwork could not be read.
    """
    with GoogleClient(timeout_seconds=_SECONDS, deadline_seconds=_SECONDS) as client:
        try:
            return client.get(f"{endpoint('COMPUTE')}{name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise
