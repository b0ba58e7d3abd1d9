"""What the engine calls for `TrafficSwitch`: looking where the traffic of a service goes, and moving it.

A move is one PATCH of the traffic alone, under the etag of what was looked at: who changes the service at the same time
is not overwritten. It is done again without harm, so a run that was killed leaves nothing to clean up. The class is
pickled into the stack's state by reference: neither it nor this module may be renamed, and it holds nothing.
"""

import sys
import time
from collections.abc import Mapping
from typing import Any

from pulumi.dynamic import CreateResult, DiffResult, ReadResult, ResourceProvider, UpdateResult
from pulumi.output import contains_unknowns

from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from components.config.revision_traffic import has_all_traffic, moved_to, shares
from components.providers.errors import ToldError

_PREVIEW_SECONDS = 5.0
_REQUEST_SECONDS = 30.0
_ATTEMPTS = 5
_POLL_SECONDS = 0.25
# What the API answers where the service is no more as it was looked at.
_CHANGED = frozenset({409, 412})


class TrafficSwitchError(ToldError):
    """The traffic was not moved; the text says what to do."""

    __module__ = "builtins"  # shown without a module before its name


class TrafficSwitchProvider(ResourceProvider):
    """What the engine calls. Properties come and go by name: service, revision, deadline_seconds; serving."""

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Another revision is a change, and so is traffic that somebody moved meanwhile."""
        wanted = _news.get("revision")
        if contains_unknowns(wanted) or wanted != _olds.get("revision"):
            return DiffResult(changes=True)
        try:
            with GoogleClient(timeout_seconds=_PREVIEW_SECONDS, deadline_seconds=_PREVIEW_SECONDS) as client:
                service = _service(client, _news)
        except RestError as error:
            # The plugin has no line to the engine's log; what it writes here the engine shows.
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
        """See at a refresh where the traffic goes; without the service there is none.

        Raises:
            TrafficSwitchError: Nobody could look.
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
    """The outputs, with the traffic at the wanted revision."""
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
    """Only what was checked gets traffic, and only while it is still what the next deploy starts from.

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
