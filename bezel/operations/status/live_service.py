"""A service as Cloud Run has it now. Leaves out what its conditions and its traffic mean."""

from collections.abc import Mapping
from typing import Any

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedService
from bezel.rest import ApiError


def read_service(context: Context, service: DeployedService) -> dict[str, Any] | None:
    """The service as Cloud Run has it now; None where it is gone.

    Raises:
        RestError: Cloud Run could not be asked.
    """
    try:
        return context.google.get(f"{context.address('CLOUD_RUN_V2')}{service.id}")
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def min_instances(live: Mapping[str, Any]) -> int:
    """The least number of instances that a service keeps: its own minimum, or that of its template."""
    template = (live.get("template") or {}).get("scaling") or {}
    return max(int(scaling.get("minInstanceCount") or 0) for scaling in (template, live.get("scaling") or {}))
