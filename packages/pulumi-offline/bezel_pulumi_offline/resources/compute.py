"""Base of Compute Engine's resource types: its own kind of long-running operations, and links in several forms.

Owns the waiting, and the two forms of a reference: `projects/P/...` in a body, a v1 link in the state. Leaves the types
to networks.py and routers.py.
"""

import re
from collections.abc import Mapping
from typing import Any

from bezel_pulumi_offline.lifecycle.comparisons import relative
from bezel_pulumi_offline.lifecycle.resource import Operations, fill
from bezel_pulumi_offline.lifecycle.values import Properties


class ComputeOperations(Operations):
    """Create, read, update and delete as in Compute's API."""

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the resource, with its network and its region as relative links."""
        sent = super().body(planned, updating=updating)
        if "network" in sent:
            sent["network"] = relative(sent["network"], fill("projects/{project}/global/networks/", planned))
        if "region" in sent:
            sent["region"] = fill("projects/{project}/global/regions/{region}", planned)
        return sent

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the resource, with links of any version as v1 links and without a disabled `logConfig`."""
        answer = super().read(resource_id, values)
        if answer is None:
            return None
        logging = answer.get("logConfig")
        if isinstance(logging, Mapping) and not logging.get("enable"):
            del answer["logConfig"]
        return {name: version_one(value) for name, value in answer.items()}

    def wait_for_operation(self, operation: Mapping[str, Any], activity: str) -> None:
        """Wait for an operation of Compute, whose status is DONE also where it failed."""
        self.cloud.wait_for_operation(
            self.kind.api,
            _plain(operation),
            activity,
            until=self.until,
            poll=lambda path: _plain(self.call("GET", path)),
        )


def _plain(operation: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Compute operation in the form of the other APIs; its response is the operation itself."""
    name = re.sub(r".*?/?(projects/.*)", r"\1", str(operation.get("selfLink", "")))
    errors = (operation.get("error") or {}).get("errors") or []
    failure = "".join(f"{error.get('message') or error.get('code')}\n" for error in errors)
    return {"name": name, "done": operation.get("status") == "DONE", "response": operation, "failure": failure}


def version_one(value: Any) -> Any:
    """Return a link of any version of the API as a v1 link; any other value unchanged."""
    return re.sub(r"/compute/\w+/projects/", "/compute/v1/projects/", value) if isinstance(value, str) else value
