"""Resource types of projects: enabled APIs (Service Usage), and members of the project's policy."""

import threading
import time
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from bezel_pulumi_offline.google.errors import ProviderError, failing
from bezel_pulumi_offline.lifecycle.resource import GO_CLIENT, Operations, fill, go_quote
from bezel_pulumi_offline.lifecycle.values import Properties

_WINDOW = 0.1  # seconds in which requested services are collected for one request (the provider's own: 9 s)


class _Batch:
    """Services of one project that are enabled by one request, because the API has a small write quota."""

    _lock = threading.Lock()
    _open: ClassVar[dict[str, "_Batch"]] = {}

    def __init__(self) -> None:
        self.names: list[str] = []
        self.made: set[str] = set()
        self.done = threading.Event()
        self.error: ProviderError | None = None

    @classmethod
    def enable(cls, operations: "Enabled", project: str, name: str) -> bool:
        """Add a service to the open batch, which the call that opened it sends; return whether it was not enabled."""
        with cls._lock:
            batch = cls._open.get(project)
            first = batch is None
            if batch is None:
                batch = cls._open[project] = cls()
            batch.names.append(name)
        if first:
            time.sleep(_WINDOW)
            with cls._lock:
                del cls._open[project]
            try:
                batch.made = operations.enable(project, batch.names)
            except ProviderError as error:
                batch.error = error
            finally:
                batch.done.set()
        batch.done.wait()
        if batch.error is not None:
            raise ProviderError(str(batch.error), batch.error.advice)
        return name in batch.made


class Enabled(Operations):
    """Operations of an enabled API of a project."""

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Enable the API, unless it is enabled: then nothing is read after it."""
        project, name = str(planned["project"]), str(planned["service"])
        resource_id = fill(self.kind.id, planned)
        if not _Batch.enable(self, project, name):
            return resource_id, {"service": name}
        return resource_id, self.expect(resource_id, planned)

    def enable(self, project: str, services: list[str]) -> set[str]:
        """Enable, with one request, those APIs that are not enabled, and wait for the operation; return them."""
        enabled = self._enabled_services(project, "")
        names = [name for name in services if name not in enabled]
        if not names:
            return set()
        path, content = f"projects/{project}/services:batchEnable", {"serviceIds": names}
        if len(names) == 1:
            path, content = f"projects/{project}/services/{names[0]}:enable", {}
        asked = f"Enable Project Service {go_quote(names[0])} for project {go_quote(project)}"
        with failing(f"Request `{asked}` returned error"), failing("failed to enable services"):
            with failing("failed on request preconditions"):
                operation = self._usage("POST", path, content=content)
            self._finish(operation, f"Enable Project {go_quote(project)} Services: [{' '.join(names)}]")
        return set(names)

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the API; None where it is not enabled or the project does not exist."""
        project, _, name = resource_id.partition("/")
        del values
        state: Properties = {"lifecycleState": "absent"}
        with failing(f"Error when reading or editing Project Service {resource_id}", unless_absent=True):
            state = self.cloud.call("GET", "RESOURCE_MANAGER", f"projects/{project}", GO_CLIENT, until=self.until)
        alive = state.get("lifecycleState", "ACTIVE") == "ACTIVE"
        return {"service": name} if alive and name in self._enabled_services(project, resource_id) else None

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Send nothing: every property that changes in place concerns the provider only, and only the state changes."""
        del resource_id, prior, changed
        return {"service": planned["service"]}

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Disable the API where `disableOnDestroy` is set."""
        project, _, name = resource_id.partition("/")
        if not prior.get("disableOnDestroy"):
            return
        content: Properties = {
            "checkIfServiceHasUsage": "CHECK" if prior.get("checkIfServiceHasUsageOnDestroy") else "SKIP"
        }
        if prior.get("disableDependentServices"):
            content["disableDependentServices"] = True
        with failing(f"Error disabling service {go_quote(name)} for project {go_quote(project)}", unless_absent=True):
            operation = self._usage("POST", f"projects/{project}/services/{name}:disable", content=content)
            self._finish(operation, "api to disable")

    def _enabled_services(self, project: str, resource_id: str) -> set[str]:
        query = {"fields": "services/name,nextPageToken", "filter": "state:ENABLED", "pageSize": "200"}
        names: set[str] = set()
        listing = f"Request `List Project Services {project}` returned error: Failed to list enabled services"
        where = f"Error when reading or editing Project Service {resource_id}: {listing} for project {project}"
        with failing(where):
            while True:
                page = self._usage("GET", f"projects/{project}/services", query=query) or {}
                names |= {str(item["name"]).rsplit("/", 1)[-1] for item in page.get("services", [])}
                if not (token := page.get("nextPageToken")):  # may be empty on the last page
                    return names
                query["pageToken"] = str(token)

    def _finish(self, operation: Mapping[str, Any], activity: str) -> None:
        self.cloud.wait_for_operation(self.kind.api, operation, activity, until=self.until)

    def _usage(self, method: str, path: str, query: Mapping[str, str] | None = None, content: object = None) -> Any:
        return self.cloud.call(
            method, self.kind.api, path, {**GO_CLIENT, **(query or {})}, content, until=self.until, version="v1"
        )
