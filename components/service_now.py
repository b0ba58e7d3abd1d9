"""What Cloud Run says of a service before anything of it is declared: its present state, and the quota of its GPUs.

Every deploy wants to know whether the last revision failed, to make another one then. A gated rollout also names what
serves now when it updates the service, and needs room for two revisions. Reads only, within seconds, in previews too.
Leaves out what follows from it: `bezel.traffic`'s and the planner's.
"""

from typing import Any
from urllib.parse import quote

import pulumi

from bezel.rest import ApiError, GoogleClient, RestError, endpoint

_SECONDS = 10.0
_NEVER_USED = "has not been used in project"


class UnknownServiceError(pulumi.RunError):
    """The service cannot be read; the text says what to do."""


def look_up_service(name: str) -> dict[str, Any] | None:
    """The service as run v2 describes it, None where there is none.

    Args:
        name: `projects/P/locations/L/services/S`.

    Raises:
        UnknownServiceError: It could not be asked.
    """
    try:
        with GoogleClient(timeout_seconds=_SECONDS, deadline_seconds=_SECONDS) as client:
            return client.get(f"{endpoint('CLOUD_RUN_V2')}{name}")
    except ApiError as error:
        # Where Cloud Run was never enabled there is no service either.
        if error.status == 404 or _NEVER_USED in error.message:
            return None
        raise UnknownServiceError(_unknown(name, str(error))) from None
    except (RestError, ValueError) as error:
        raise UnknownServiceError(_unknown(name, str(error))) from None


def look_up_quota(project: str, quota_id: str, region: str) -> int:
    """What a quota of Cloud Run allows in a region, as the quota counts.

    Source: Cloud Quotas v1, quotaInfos.get; a value holds for the locations that stand beside it.

    Raises:
        RestError: It could not be asked, or does not say.
    """
    path = f"projects/{project}/locations/global/services/run.googleapis.com/quotaInfos/{quote(quota_id, safe='')}"
    with GoogleClient(timeout_seconds=_SECONDS, deadline_seconds=_SECONDS) as client:
        found = client.get(f"{endpoint('CLOUD_QUOTAS')}{path}")
    for info in found.get("dimensionsInfos") or ():
        value = (info.get("details") or {}).get("value")
        if region in (info.get("applicableLocations") or ()) and value is not None:
            return int(value)
    raise RestError(f"{quota_id} tells no value for {region}")


def _unknown(name: str, why: str) -> str:
    return (
        f"{name}: the service cannot be read: {why}.\n"
        "  Consequence: nothing is deployed: which revision serves, and whether the last one failed, is unknown.\n"
        "  Repair: log in (`gcloud auth application-default login`) as somebody with roles/run.viewer, then run the "
        "same command again."
    )
