"""Dynamic provider of `ServiceDrain`: waits when it is deleted, and does nothing else.

It is deleted before the service that it depends on, and after the balancer was updated. Where no rule of the stack
leads to the service any more, as in a destroy, it does not wait. The class is pickled into the stack's state by
reference: neither it nor this module may be renamed, and it holds no data.
"""

from collections.abc import Mapping
from typing import Any

from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider, UpdateResult

from bezel.leases.clock import clock_of, format_duration
from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from bezel_components.base.dynamic import Progress

_REQUEST_SECONDS = 30.0
_STEP_SECONDS = 15.0
_NEVER_USED = "has not been used in project"
_SETTINGS = ("project", "stack_label", "seconds")


class ServiceDrainProvider(ResourceProvider):
    """Provider of `ServiceDrain`. Inputs: project, service, stack_label, seconds."""

    serialize_as_secret_always = False
    clock = staticmethod(clock_of)
    """Clock of this process."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Replace it for another service, so that the old one has its wait."""
        replaces = ["service"] if _olds.get("service") != _news.get("service") else []
        changes = bool(replaces) or any(_olds.get(key) != _news.get(key) for key in _SETTINGS)
        return DiffResult(changes=changes, replaces=replaces)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Note the service."""
        return CreateResult(f"{props['service']}/drain", _outputs(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Note the settings."""
        return UpdateResult(_outputs(_news))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Wait until requests to the service have ended, unless no address of the stack is left."""
        if not _has_address(_props):
            return
        clock, progress = self.clock(), Progress(_props.get("urn"))
        left = float(_props["seconds"])
        while left > 0:
            progress(f"requests that the balancer has sent there may end: {format_duration(left)} left")
            clock.sleep(min(left, _STEP_SECONDS))
            left -= _STEP_SECONDS
        progress.close()


def _outputs(props: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in props.items() if key != "__provider"}


def _has_address(props: Mapping[str, Any]) -> bool:
    """Whether the stack has a forwarding rule; where that may not be read, it may have one."""
    rules = f"{endpoint('COMPUTE')}projects/{props['project']}/global/forwardingRules"
    try:
        with GoogleClient(timeout_seconds=_REQUEST_SECONDS, deadline_seconds=_REQUEST_SECONDS) as client:
            listed = client.pages(rules, "items")
            return any((rule.get("labels") or {}).get("stack") == props["stack_label"] for rule in listed)
    except RestError as error:
        return not (isinstance(error, ApiError) and _NEVER_USED in error.message)
