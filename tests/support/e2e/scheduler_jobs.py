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

        def attempted_job() -> dict[str, Any]:
            job_state: dict[str, Any] = api.get(path).json()
            return job_state if job_state.get("lastAttemptTime") != before and "status" in job_state else {}

        last_state: dict[str, Any] = until(attempted_job, seconds)
        return last_state
