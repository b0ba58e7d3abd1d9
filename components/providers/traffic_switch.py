"""Dynamic provider of `TrafficSwitch`: reads where the traffic of a service goes, and moves it.

A move is one PATCH of the traffic alone, with the etag of the service as read: a concurrent change is not overwritten.
It is idempotent, so a killed run leaves nothing to clean up. The class is pickled into the stack's state by reference:
neither it nor this module may be renamed, and it holds no data.
"""

import sys
import time
from collections.abc import Mapping
from typing import Any

from pulumi.dynamic import CreateResult, DiffResult, ReadResult, ResourceProvider, UpdateResult
from pulumi.output import contains_unknowns

from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from components.config.revision_traffic import has_all_traffic, moved_to, shares
from components.dynamic import DeployError

_PREVIEW_SECONDS = 5.0
_REQUEST_SECONDS = 30.0
_ATTEMPTS = 5
_POLL_SECONDS = 0.25
# Statuses of the API for a service that changed since it was read.
_CHANGED = frozenset({409, 412})


class TrafficSwitchError(DeployError):
    """The traffic was not moved; the text says what to do."""


class TrafficSwitchProvider(ResourceProvider):
    """Provider of `TrafficSwitch`. Inputs: service, revision, deadline_seconds. Output: serving."""

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Report a change for another revision, and for traffic that another user moved meanwhile."""
        wanted = _news.get("revision")
        if contains_unknowns(wanted) or wanted != _olds.get("revision"):
            return DiffResult(changes=True)
        try:
            with GoogleClient(timeout_seconds=_PREVIEW_SECONDS, deadline_seconds=_PREVIEW_SECONDS) as client:
                service = _service(client, _news)
        except RestError as error:
            # The plugin cannot write to the engine's log, but the engine shows its standard error.
            sys.stderr.write(f"warning: nobody could look where the traffic goes: {error}\n")
            return DiffResult(changes=False)
        if has_all_traffic(service, _short(wanted)):
            return DiffResult(changes=False)
        sys.stderr.write(f"warning: {_told(service)}, not {_short(wanted)} alone: somebody has moved it\n")
        return DiffResult(changes=True)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Move the traffic.

        Raises:
            TrafficSwitchError: It is where it was.
        """
        return CreateResult(f"{props['service']}/traffic", _moved(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Move the traffic.

        Raises:
            TrafficSwitchError: It is where it was.
        """
        return UpdateResult(_moved(_news))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Record at a refresh where the traffic goes; without the service there is none.

        Raises:
            TrafficSwitchError: The service could not be read.
        """
        try:
            with GoogleClient(timeout_seconds=_REQUEST_SECONDS, deadline_seconds=_REQUEST_SECONDS) as client:
                service = _service(client, props)
        except ApiError as error:
            if error.status == 404:
                return ReadResult("", {})
            raise TrafficSwitchError(_unreadable(props, error)) from None
        except RestError as error:
            raise TrafficSwitchError(_unreadable(props, error)) from None
        return ReadResult(id_, {**props, "serving": shares(service)})


def _moved(props: Mapping[str, Any]) -> dict[str, Any]:
    """Move the traffic to the requested revision; return the outputs."""
    revision, until = _short(props["revision"]), time.monotonic() + float(props["deadline_seconds"])
    try:
        with GoogleClient(timeout_seconds=_REQUEST_SECONDS, deadline_seconds=_REQUEST_SECONDS) as client:
            service = _move(client, props, revision, until)
    except RestError as error:
        raise TrafficSwitchError(
            f"the traffic could not be moved to {revision}: {error}\n"
            "consequence: what served before goes on serving\n"
            "repair: let whoever deploys have roles/run.developer, then run the same command again"
        ) from None
    kept = {key: value for key, value in props.items() if key != "__provider"}
    return {**kept, "serving": shares(service)}


def _move(client: GoogleClient, props: Mapping[str, Any], revision: str, until: float) -> dict[str, Any]:
    for number in range(1, _ATTEMPTS + 1):
        service = _service(client, props)
        if has_all_traffic(service, revision):
            return service
        _refuse_another(service, revision)
        try:
            operation = client.request(
                "PATCH",
                f"{endpoint('CLOUD_RUN_V2')}{props['service']}",
                params={"updateMask": "traffic"},
                json={
                    "traffic": [target.as_json() for target in moved_to(revision)],
                    "etag": service.get("etag", ""),
                },
                idempotent=True,
            )
        except ApiError as error:
            if error.status not in _CHANGED or number == _ATTEMPTS:
                raise
            time.sleep(_POLL_SECONDS)
            continue
        _finished(client, operation, revision, until)
    service = _service(client, props)
    if not has_all_traffic(service, revision):
        raise TrafficSwitchError(
            f"{_told(service)}, although it was moved to {revision} {_ATTEMPTS} times: somebody moves it back\n"
            "repair: let one deploy run at a time, then run the same command again"
        )
    return service


def _finished(client: GoogleClient, operation: Mapping[str, Any], revision: str, until: float) -> None:
    while not operation.get("done"):
        if time.monotonic() >= until:
            raise TrafficSwitchError(
                f"the platform has not moved the traffic to {revision} in time\n"
                "consequence: it may still do so\n"
                "repair: run the same command again: it takes the traffic as it then is"
            )
        time.sleep(_POLL_SECONDS)
        operation = client.get(f"{endpoint('CLOUD_RUN_V2')}{operation['name']}")
    if error := operation.get("error"):
        raise RestError(str(error.get("message") or "the operation failed"))


def _refuse_another(service: Mapping[str, Any], revision: str) -> None:
    """Refuse any revision but the checked one, and that one too once it is not the newest any more.

    Raises:
        TrafficSwitchError: The newest revision is another one, or is not ready.
    """
    created, ready = (_short(service.get(f"latest{kind}Revision")) for kind in ("Created", "Ready"))
    if created == ready == revision:
        return
    what = f"{created} was made after it" if created != revision else "it is not ready"
    raise TrafficSwitchError(
        f"{revision} gets no traffic: {what}\n"
        f"consequence: {_told(service)}\n"
        "repair: `pulumi up --refresh` makes the service as the stack file says, checks it and moves the traffic"
    )


def _service(client: GoogleClient, props: Mapping[str, Any]) -> dict[str, Any]:
    return client.get(f"{endpoint('CLOUD_RUN_V2')}{props['service']}")


def _told(service: Mapping[str, Any]) -> str:
    parts = [f"{percent} % of the traffic goes to {name}" for name, percent in shares(service).items()]
    return ", ".join(parts) or "no revision has traffic"


def _short(revision: object) -> str:
    return str(revision).rpartition("/")[2]


def _unreadable(props: Mapping[str, Any], error: RestError) -> str:
    return (
        f"nobody could look where the traffic of {_short(props['service'])} goes: {error}\n"
        "repair: let whoever deploys have roles/run.viewer, then run the same command again"
    )
