"""A job of Cloud Scheduler that a test runs out of turn."""

from typing import Any

from localcloud_support.client import until
from tests.support.e2e.rehearsal import Rehearsal


def ran(rehearsal: Rehearsal, region: str, job: str, seconds: float = 90.0) -> dict[str, Any]:
    """The job after it was run; its status is that of its last attempt that has ended."""
    path = f"/cloudscheduler/v1/projects/bezel-local/locations/{region}/jobs/{job}"
    with rehearsal.api() as api:
        before = api.get(path).json().get("lastAttemptTime")
        assert api.post(f"{path}:run", json={}).is_success

        def attempted() -> dict[str, Any]:
            found: dict[str, Any] = api.get(path).json()
            return found if found.get("lastAttemptTime") != before and "status" in found else {}

        found: dict[str, Any] = until(attempted, seconds)
        return found
