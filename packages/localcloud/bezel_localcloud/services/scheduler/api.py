"""Cloud Scheduler v1: projects.locations.jobs. Leaves out their runs: see dispatcher.py."""

import re
import uuid

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.core.regions import regions
from bezel_localcloud.http.messages import settable_fields
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.scheduler import jobs
from bezel_localcloud.services.scheduler.jobs import KIND

api = Api("cloudscheduler.googleapis.com", "Cloud Scheduler API", locations=regions())
_PROJECT = "/cloudscheduler/v1/projects/{project:id}/locations"
_LOCATION = _PROJECT + "/{location:id}"
_ONE = _LOCATION + "/jobs/{job:id}"
_PARENT = "projects/{project}/locations/{location}"
_NAME = _PARENT + "/jobs/{job}"
_MESSAGE = "cloudscheduler.Job"
_SETTABLE = settable_fields(_MESSAGE)
_ID = re.compile(r"[A-Za-z0-9_-]{1,500}")
_READS = "cloudscheduler.locations"


@api.route("GET", _PROJECT, needs=f"{_READS}.list", query="pageSize pageToken")
def list_locations(call: Call) -> Json:
    """Locations of jobs."""
    return call.page([(region, _location(region)) for region in sorted(regions())], "locations")


@api.route("GET", _LOCATION, needs=f"{_READS}.get")
def get_location(call: Call) -> Json:
    """One location."""
    return _location(call.param("location"))


def _location(region: str) -> Json:
    name = f"projects/{PROJECT}/locations/{region}"
    return {"name": name, "locationId": region, "labels": {"cloud.googleapis.com/region": region}}


@api.route("POST", _LOCATION + "/jobs", needs="cloudscheduler.jobs.create", body="job")
def create(call: Call) -> Json:
    """Create a job; without a name Google chooses its id."""
    parent, cloud = call.name(_PARENT), call.cloud
    name = str(call.body.get("name", "")).replace(f"projects/{PROJECT_NUMBER}/", f"projects/{PROJECT}/", 1)
    name = name or f"{parent}/jobs/{uuid.uuid4()}"
    prefix, _, job_id = name.rpartition("/")
    if prefix != f"{parent}/jobs" or not _ID.fullmatch(job_id):
        form = 'Job name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>/jobs/<JOB_ID>".'
        raise invalid(form, ("job.name", "expected a job of this location"))
    job = jobs.job_with_defaults({key: value for key, value in call.body.items() if key in _SETTABLE})
    _act_as(call, job)
    now = cloud.pace.now()
    with cloud.store.transaction():
        if cloud.store.get(KIND, name) is not None:
            raise ApiError("ALREADY_EXISTS", f"Job {name} already exists.")
        row = jobs.new_row({"name": name, **job, "userUpdateTime": timestamp(now), "state": "ENABLED"}, now)
        cloud.store.put(KIND, name, row)
    cloud.scheduler.wake()
    return dict(row["job"])


@api.route("GET", _LOCATION + "/jobs", needs="cloudscheduler.jobs.list", query="pageSize pageToken")
def list_jobs(call: Call) -> Json:
    """Jobs of a location."""
    rows = call.cloud.store.rows(KIND, f"{call.name(_PARENT)}/jobs/")
    return call.page([(name, row["job"]) for name, row in rows], "jobs")


@api.route("GET", _ONE, needs="cloudscheduler.jobs.get")
def get(call: Call) -> Json:
    """One job."""
    return dict(_row(call)[1]["job"])


@api.route("PATCH", _ONE, needs="cloudscheduler.jobs.update", query="updateMask", body="job")
def patch(call: Call) -> Json:
    """Change the fields that the mask names, without one all of them; a run that is under way ends as it began."""
    cloud = call.cloud
    with cloud.store.transaction():
        name, row = _row(call)
        old = row["job"]
        job = jobs.job_with_defaults(apply_mask(old, call.body, call.mask() or ["*"], _MESSAGE, _SETTABLE))
        _act_as(call, job)
        now = cloud.pace.now()
        kept = {key: value for key, value in old.items() if key not in _SETTABLE}
        job = {**kept, **job, "userUpdateTime": timestamp(now)}
        same = all(old[key] == job[key] for key in ("schedule", "timeZone"))
        row = row | {"job": job} if same else jobs.new_row(job, now)
        cloud.store.put(KIND, name, row)
    cloud.scheduler.wake()
    return dict(row["job"])


@api.route("DELETE", _ONE, needs="cloudscheduler.jobs.delete")
def delete(call: Call) -> Json:
    """Delete a job; a request that was sent is not called back."""
    with call.cloud.store.transaction():
        call.cloud.store.delete(KIND, _row(call)[0])
    return {}


@api.route("POST", _ONE + ":pause", needs="cloudscheduler.jobs.pause")
def pause(call: Call) -> Json:
    """Stop the runs of a job until it is resumed."""
    return _set_state(call, "PAUSED")


@api.route("POST", _ONE + ":resume", needs="cloudscheduler.jobs.enable")
def resume(call: Call) -> Json:
    """Let a paused job run again, from its next occurrence on."""
    return _set_state(call, "ENABLED")


def _set_state(call: Call, state: str) -> Json:
    cloud = call.cloud
    with cloud.store.transaction():
        name, row = _row(call)
        if row["job"]["state"] != state:
            job = row["job"] | {"state": state}
            row = jobs.new_row(job, cloud.pace.now()) if state == "ENABLED" else row | {"job": job}
            cloud.store.put(KIND, name, row)
    cloud.scheduler.wake()
    return dict(row["job"])


@api.route("POST", _ONE + ":run", needs="cloudscheduler.jobs.run")
def run(call: Call) -> Json:
    """Run a job now, whatever its state; its schedule stays."""
    name, row = _row(call)
    call.cloud.scheduler.run_now(name)
    return dict(row["job"])


def _row(call: Call) -> tuple[str, Json]:
    name = call.name(_NAME)
    return name, call.row_of(KIND, name, "Job not found.")


def _act_as(call: Call, job: Json) -> None:
    if account := jobs.account_of(job):
        call.act_as(account)
