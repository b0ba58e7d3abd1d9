"""Dynamic provider of `ScheduledMinimum`: sets a service's own minimum of instances to that of the present time.

One PATCH of this field alone: no revision is made. It is idempotent, so a killed run leaves nothing to clean up. A
minimum that an entry of the schedule has set is no difference. The class is pickled into the stack's state by
reference: neither it nor this module may be renamed, and it holds no data.
"""

import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pulumi.dynamic import CreateResult, DiffResult, ReadResult, ResourceProvider, UpdateResult

from bezel.planner.base.schedule import Entry, minimum_at
from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from bezel_base.errors import Problem, caused_by
from bezel_components.base.dynamic import DeployError

MASK = "scaling.minInstanceCount"
_PREVIEW_SECONDS = 5.0
_REQUEST_SECONDS = 30.0
_POLL_SECONDS = 0.25
_DECLARED = ("service", "entries", "service_inputs")


class ScheduledMinimumError(DeployError):
    """The minimum was not set, or could not be read."""


class ScheduledMinimumProvider(ResourceProvider):
    """Provider of `ScheduledMinimum`. Inputs: service, entries, service_inputs, deadline_seconds. Output: minimum."""

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Report another schedule or service, and a minimum that no entry of the schedule has set."""
        if any(_plain(_olds.get(name)) != _plain(_news.get(name)) for name in _DECLARED):
            return DiffResult(changes=True)
        try:
            with GoogleClient(timeout_seconds=_PREVIEW_SECONDS, deadline_seconds=_PREVIEW_SECONDS) as client:
                minimum = _minimum(client, _news)
        except RestError as error:
            # The plugin cannot write to the engine's log, but the engine shows its standard error.
            sys.stderr.write(f"warning: {_unreadable(_news, error)}\n")
            return DiffResult(changes=False)
        if minimum in {entry.minimum for entry in _entries(_news)}:
            return DiffResult(changes=False)
        sys.stderr.write(f"warning: the minimum of instances is {minimum}, which no entry of the schedule sets\n")
        return DiffResult(changes=True)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Set the minimum of the present time.

        Raises:
            ScheduledMinimumError: It was not set.
        """
        return CreateResult(f"{props['service']}/minimum", _outputs(props, _set(props, _present(props))))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Set the minimum of the present time.

        Raises:
            ScheduledMinimumError: It was not set.
        """
        return UpdateResult(_outputs(_news, _set(_news, _present(_news))))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Set the minimum to 0, so that no instance runs on without a schedule; a service that is gone has none.

        Raises:
            ScheduledMinimumError: It was not set.
        """
        try:
            _set(_props, 0)
        except ScheduledMinimumError as error:
            if not isinstance(error.__context__, ApiError) or error.__context__.status != 404:
                raise

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Record the minimum at a refresh; without the service there is none.

        Raises:
            ScheduledMinimumError: The service could not be read.
        """
        try:
            with GoogleClient(timeout_seconds=_REQUEST_SECONDS, deadline_seconds=_REQUEST_SECONDS) as client:
                minimum = _minimum(client, props)
        except RestError as error:
            if isinstance(error, ApiError) and error.status == 404:
                return ReadResult("", {})
            raise ScheduledMinimumError(_unreadable(props, error)) from None
        return ReadResult(id_, {**props, "minimum": minimum})


def _entries(props: Mapping[str, Any]) -> list[Entry]:
    return [Entry(str(cron), str(zone), int(minimum)) for cron, zone, minimum in props["entries"]]


def _present(props: Mapping[str, Any]) -> int:
    return minimum_at(_entries(props), datetime.now(UTC))


def _outputs(props: Mapping[str, Any], minimum: int) -> dict[str, Any]:
    return {**{key: value for key, value in props.items() if key != "__provider"}, "minimum": minimum}


def _set(props: Mapping[str, Any], minimum: int) -> int:
    try:
        with GoogleClient(timeout_seconds=_REQUEST_SECONDS, deadline_seconds=_REQUEST_SECONDS) as client:
            _patch(client, props, minimum)
    except RestError as error:
        consequence = f"its minimum of instances cannot be set to {minimum}"
        repair = "grant roles/run.developer to the account that deploys, then run the same command again."
        raise ScheduledMinimumError(caused_by(error, f"schedule of {_name(props)}", consequence, repair)) from error
    return minimum


def _patch(client: GoogleClient, props: Mapping[str, Any], minimum: int) -> None:
    until = time.monotonic() + float(props["deadline_seconds"])
    address = endpoint("CLOUD_RUN_V2")
    body = {"scaling": {"minInstanceCount": minimum}}
    params = {"updateMask": MASK}
    operation = client.request("PATCH", f"{address}{props['service']}", params=params, json=body, idempotent=True)
    while not operation.get("done"):
        if time.monotonic() >= until:
            raise ScheduledMinimumError(_late(props, minimum))
        time.sleep(_POLL_SECONDS)
        operation = client.get(f"{address}{operation['name']}")
    if error := operation.get("error"):
        raise RestError(str(error.get("message") or "the operation failed"))


def _minimum(client: GoogleClient, props: Mapping[str, Any]) -> int:
    service = client.get(f"{endpoint('CLOUD_RUN_V2')}{props['service']}")
    return int((service.get("scaling") or {}).get("minInstanceCount") or 0)


def _late(props: Mapping[str, Any], minimum: int) -> Problem:
    consequence = "Cloud Run may still set it."
    return Problem(f"schedule of {_name(props)}", f"minimum {minimum} not set in time", consequence, "run it again.")


def _unreadable(props: Mapping[str, Any], error: RestError) -> Problem:
    return caused_by(
        error,
        f"schedule of {_name(props)}",
        "it is unknown how many instances are kept running, as the service cannot be read",
        "grant roles/run.viewer to the account that deploys, then run the same command again.",
    )


def _name(props: Mapping[str, Any]) -> str:
    return str(props["service"]).rpartition("/")[2]


def _plain(value: Any) -> Any:
    """A value as the engine returns it from a state: whole numbers are floats there."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
