"""Resource type of Cloud Scheduler's jobs.

There is no recording of one. The row follows the provider's published source
(services/cloudscheduler/resource_cloud_scheduler_job.go), where `paused` is not part of the job: after a create, and
where it changes, the provider calls :pause or :resume.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from bezel_pulumi_offline.google.errors import failing
from bezel_pulumi_offline.lifecycle.resource import LOCAL, Operations, fill, go_quote
from bezel_pulumi_offline.lifecycle.values import Properties

# Headers that Google adds, and the provider leaves out of the state.
_ADDED = {"User-Agent": "Google-Cloud-Scheduler", "Content-Type": "application/octet-stream"}
_DEADLINE = "180s"  # Google's default, which a create leaves out
_GOOGLES = re.compile(r"(X-Google-|X-AppEngine-|Content-Length).*")


class Job(Operations):
    """Operations of a job."""

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Create the job, then pause or resume it."""
        resource_id = fill(self.kind.id, planned)
        content = {"name": resource_id, **self.body(planned)}
        if content.get("attemptDeadline") == _DEADLINE:
            del content["attemptDeadline"]
        self.post(planned, content)
        self._set_state(resource_id, planned)
        return self.read_created(resource_id, planned)

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the job; whether it is paused is its state."""
        answer = super().read(resource_id, values)
        if answer is None:
            return None
        if target := answer.get("httpTarget"):
            headers = {
                name: value
                for name, value in (target.get("headers") or {}).items()
                if _ADDED.get(name) != value and not _GOOGLES.match(name)
            }
            answer["httpTarget"] = {**target, "headers": headers}
        return {**answer, "paused": answer.get("state") == "PAUSED"}

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Send the whole job, then pause or resume it if that has changed."""
        del prior
        if set(changed) - LOCAL:
            with failing(f"Error updating {self.kind.title} {go_quote(resource_id)}"):
                self.call("PATCH", resource_id, self.kind.query, self.body(planned, updating=True))
            if "paused" in changed:
                self._set_state(resource_id, planned)
        return self.expect(resource_id, planned)

    def _set_state(self, resource_id: str, planned: Mapping[str, Any]) -> None:
        verb = "pause" if planned.get("paused") is True else "resume"
        with failing("Error setting Cloud Scheduler Job status"):
            self.call("POST", f"{resource_id}:{verb}", self.kind.query, {})
