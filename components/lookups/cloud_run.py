"""Lookup of a Cloud Run service's present state before the service is declared.

Every deploy needs to know whether the last revision failed, to make another one then. A gated rollout also names the
serving revision when it updates the service. Reads only, within seconds, in previews too. Leaves out the conclusions:
`components.config.revision_traffic`.
"""

from typing import Any

import pulumi

from bezel.rest import ApiError, GoogleClient, RestError, endpoint

_SECONDS = 10.0
_NEVER_USED = "has not been used in project"


class UnknownServiceError(pulumi.RunError):
    """The service cannot be read; the text says what to do."""


def look_up_service(name: str) -> dict[str, Any] | None:
    """The service in run v2's description, None where there is none.

    Args:
        name: `projects/P/locations/L/services/S`.

    Raises:
        UnknownServiceError: The service could not be read.
    """
    try:
        with GoogleClient(timeout_seconds=_SECONDS, deadline_seconds=_SECONDS) as client:
            return client.get(f"{endpoint('CLOUD_RUN_V2')}{name}")
    except ApiError as error:
        # A project that never enabled Cloud Run has no service either.
        if error.status == 404 or _NEVER_USED in error.message:
            return None
        raise UnknownServiceError(_unknown(name, str(error))) from None
    except (RestError, ValueError) as error:
        raise UnknownServiceError(_unknown(name, str(error))) from None


def _unknown(name: str, why: str) -> str:
    return (
        f"{name}: the service cannot be read: {why}.\n"
        "  Consequence: nothing is deployed: which revision serves, and whether the last one failed, is unknown.\n"
        "  Repair: log in (`gcloud auth application-default login`) as somebody with roles/run.viewer, then run the "
        "same command again."
    )
