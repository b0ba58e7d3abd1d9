"""Cloud Run's services of a region, as run v2 describes them."""

from typing import Any

from bezel.rest import ApiError, GoogleClient

_NEVER_USED = "has not been used in project"


def services_of(client: GoogleClient, endpoint: str, project: str, region: str) -> list[dict[str, Any]]:
    """Return the services of a region; none for a project that never enabled Cloud Run.

    Args:
        client: The client that sends the requests.
        endpoint: Address of run v2, with a slash at its end.
        project: Id of the project.
        region: Name of the region.

    Raises:
        RestError: A request failed.
    """
    try:
        return list(client.pages(f"{endpoint}projects/{project}/locations/{region}/services", "services"))
    except ApiError as error:
        if _NEVER_USED in error.message:
            return []
        raise
