"""Lookup of a Cloud Run service's present state before the service is declared.

Every deploy needs to know whether the last revision failed, to make another one then. A gated rollout also names the
serving revision when it updates the service. Reads only, within seconds, in previews too. Leaves out the conclusions:
`bezel.diagnosis.revision_traffic`.
"""

from typing import Any

import pulumi

from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from bezel_base.errors import UserError, caused_by

_SECONDS = 10.0
_NEVER_USED = "has not been used in project"


class UnknownServiceError(UserError, pulumi.RunError):
    """The service cannot be read; shown without a traceback."""


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
    except (RestError, ValueError) as error:
        # A project that never enabled Cloud Run has no service either.
        if isinstance(error, ApiError) and (error.status == 404 or _NEVER_USED in error.message):
            return None
        raise UnknownServiceError(
            caused_by(
                error,
                name,
                "nothing is deployed, as the service cannot be read, and which revision serves is unknown",
                "log in (`gcloud auth application-default login`) with an account that has roles/run.viewer, then run "
                "the same command again.",
            )
        ) from None
