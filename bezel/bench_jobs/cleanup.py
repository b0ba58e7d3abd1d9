"""Cleanup of load jobs and their objects: at the end of a run, and after a killed one.

Owns the labels that mark a job as this command's, and the message about leftovers that cannot be deleted. Leaves out
the records by which leftovers are found (`bezel.bench_jobs.job_registry`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from bezel.bench_jobs.cloud_run_jobs import CloudRunJobs
from bezel.bench_jobs.gcs_exchange import BucketPlace
from bezel.bench_jobs.job_registry import JobRecord, left, noted, state_folder
from bezel.errors import UserError
from bezel.rest import GoogleClient, RestError

if TYPE_CHECKING:
    from collections.abc import Callable

LABELS: Final = {"managed-by": "bezel", "bezel-part": "bench-load"}
RUN: Final = "bezel-run"
"""Label with the mark of the run that made a job."""
_SECONDS: Final = 120.0


def labels_of(made: JobRecord) -> dict[str, str]:
    """The labels of a run's job."""
    return LABELS | {RUN: made.run}


def is_ours(job: dict[str, Any]) -> bool:
    """Whether any run of this command has made a job."""
    labels = job.get("labels") or {}
    return all(labels.get(name) == value for name, value in LABELS.items())


def by_hand(made: JobRecord) -> str:
    """The command that deletes a run's job."""
    return f"gcloud run jobs delete {made.job} --project {made.project} --region {made.region}"


def tidied(google: GoogleClient, made: JobRecord, show: Callable[[str], None]) -> bool:
    """Delete what a run made; return whether all is gone. A leftover is reported, and does not void the measurement."""
    try:
        _delete(google, made, show)
    except (RestError, UserError) as error:
        _tell_left(made, str(error))
        return False
    except KeyboardInterrupt:
        _tell_left(made, "stopped")
        raise
    return True


def tidy_leftovers(google: GoogleClient, job: str, show: Callable[[str], None]) -> None:
    """Delete what killed runs of this machine left; report what cannot be deleted, for the next run to find again.

    Raises:
        UserError: The job named `job` could not be deleted, or is in use, and blocks this run.
        RestError: Cloud Run or Cloud Storage refused to delete it; the text holds the reason.
    """
    for one in left(state_folder()):
        try:
            with noted(one, state_folder()) as forget:
                found = CloudRunJobs(google, one.project, one.region, show).find(one.job)
                # Another run may have made a job of the same name meanwhile.
                if found is None or (found.get("labels") or {}).get(RUN) == one.run:
                    _delete(google, one, show)
                    sys.stderr.write(f"bezel: deleted what a run that was killed left: job {one.job} in {one.region}\n")
                forget()
        except (RestError, UserError) as error:
            if one.job == job:
                raise
            _tell_left(one, str(error))


def _delete(google: GoogleClient, made: JobRecord, show: Callable[[str], None]) -> None:
    show(f"deletes job {made.job} and what lies in {made.place}")
    CloudRunJobs(google, made.project, made.region, show).delete(made.job)
    with BucketPlace(made.place, _SECONDS) as place:
        place.clear()


def _tell_left(made: JobRecord, why: str) -> None:
    sys.stderr.write(
        f"bezel: left: job {made.job} in {made.region} or objects below {made.place} ({why}). "
        f"The next run deletes them, or: {by_hand(made)}\n"
    )
