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

from bezel.diagnosis.revision_traffic import DIRECT, has_all_traffic, is_direct, moved_to, shares
from bezel.outside_changes.rollback import recorded_rollback
from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from bezel_base.errors import Problem, caused_by
from bezel_components.base.dynamic import DeployError

_PREVIEW_SECONDS = 5.0
_REQUEST_SECONDS = 30.0
_ATTEMPTS = 5
_POLL_SECONDS = 0.25
# Statuses of the API for a service that changed since it was read.
_CHANGED = frozenset({409, 412})


class TrafficSwitchError(DeployError):
    """The traffic was not moved, or could not be read."""


class TrafficSwitchProvider(ResourceProvider):
    """Provider of `TrafficSwitch`. Inputs: service, revision, template, newest, deadline_seconds.

    Outputs: serving, and ended: the time of the rollback that it has ended, as of `bezel.outside_changes.rollback`.
    """

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Report a change for another revision, and for traffic that another user moved meanwhile."""
        revision, template = _news.get("revision"), _news.get("template")
        is_other = revision != _olds.get("revision") or bool(_news.get("newest")) != bool(_olds.get("newest"))
        if contains_unknowns([revision, template]) or is_other:
            return DiffResult(changes=True)
        # A state of before it was declared has none.
        if "template" in _olds and template != _olds["template"]:
            return DiffResult(changes=True)
        try:
            with GoogleClient(timeout_seconds=_PREVIEW_SECONDS, deadline_seconds=_PREVIEW_SECONDS) as client:
                service = _service(client, _news)
        except RestError as error:
            # The plugin cannot write to the engine's log, but the engine shows its standard error.
            sys.stderr.write(f"warning: {_unreadable(_news, error)}\n")
            return DiffResult(changes=False)
        if _is_there(_news, service, _short(revision)):
            return DiffResult(changes=False)
        sys.stderr.write(f"warning: the traffic was moved: {_shares_text(service)}, not to {_short(revision)} alone\n")
        return DiffResult(changes=True)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Move the traffic.

        Raises:
            TrafficSwitchError: It was not moved.
        """
        return CreateResult(f"{props['service']}/traffic", _move_traffic(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Move the traffic.

        Raises:
            TrafficSwitchError: It was not moved.
        """
        return UpdateResult(_move_traffic(_news))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Record at a refresh where the traffic goes; without the service there is none.

        Raises:
            TrafficSwitchError: The service could not be read.
        """
        try:
            with GoogleClient(timeout_seconds=_REQUEST_SECONDS, deadline_seconds=_REQUEST_SECONDS) as client:
                service = _service(client, props)
        except RestError as error:
            if isinstance(error, ApiError) and error.status == 404:
                return ReadResult("", {})
            raise TrafficSwitchError(_unreadable(props, error)) from None
        return ReadResult(id_, {**props, "serving": shares(service)})


def _move_traffic(props: Mapping[str, Any]) -> dict[str, Any]:
    """Move the traffic to the requested revision; return the outputs."""
    revision, until = _short(props["revision"]), time.monotonic() + float(props["deadline_seconds"])
    try:
        with GoogleClient(timeout_seconds=_REQUEST_SECONDS, deadline_seconds=_REQUEST_SECONDS) as client:
            service = _move(client, props, revision, until)
    except RestError as error:
        raise TrafficSwitchError(
            caused_by(
                error,
                f"traffic of {_short(props['service'])}",
                f"it cannot be moved to {revision}, and the previous revision keeps serving",
                "grant roles/run.developer to the account that deploys, then run the same command again.",
            )
        ) from None
    rollback = recorded_rollback(service)
    ended = {} if rollback is None else {"ended": rollback.since}
    kept = {key: value for key, value in props.items() if key not in {"__provider", "ended"}}
    return {**kept, "serving": shares(service), **ended}


def _move(client: GoogleClient, props: Mapping[str, Any], revision: str, until: float) -> dict[str, Any]:
    for number in range(1, _ATTEMPTS + 1):
        service = _service(client, props)
        if _is_there(props, service, revision):
            return service
        _refuse_another(service, revision)
        try:
            operation = client.request(
                "PATCH",
                f"{endpoint('CLOUD_RUN_V2')}{props['service']}",
                params={"updateMask": "traffic"},
                json={
                    "traffic": [target.as_json() for target in (DIRECT if props.get("newest") else moved_to(revision))],
                    "etag": service.get("etag", ""),
                },
                idempotent=True,
            )
        except ApiError as error:
            if error.status not in _CHANGED or number == _ATTEMPTS:
                raise
            time.sleep(_POLL_SECONDS)
            continue
        _await_operation(client, operation, revision, until)
    service = _service(client, props)
    if not _is_there(props, service, revision):
        raise TrafficSwitchError(
            Problem(
                f"traffic of {_short(props['service'])}",
                _shares_text(service),
                f"it was moved to {revision} {_ATTEMPTS} times, and something else moves it back.",
                "run one deploy at a time, then run the same command again.",
            )
        )
    return service


def _is_there(props: Mapping[str, Any], service: Mapping[str, Any], revision: str) -> bool:
    """Whether the traffic is where it is to be moved: by the revision's name, or to the newest one without its name."""
    return is_direct(service) if props.get("newest") else has_all_traffic(service, revision)


def _await_operation(client: GoogleClient, operation: Mapping[str, Any], revision: str, until: float) -> None:
    while not operation.get("done"):
        if time.monotonic() >= until:
            raise TrafficSwitchError(
                Problem(
                    f"traffic to {revision}",
                    "not moved in time",
                    "Cloud Run may still move it.",
                    "run the same command again; it continues with the traffic as it is then.",
                )
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
    reason = f"{created} is newer" if created != revision else "it is not ready"
    raise TrafficSwitchError(
        Problem(
            f"traffic to {revision}",
            f"not moved: {reason}",
            f"{_shares_text(service)}.",
            "run `pulumi up --refresh`, which deploys the stack file, checks the new revision and moves the traffic.",
        )
    )


def _service(client: GoogleClient, props: Mapping[str, Any]) -> dict[str, Any]:
    return client.get(f"{endpoint('CLOUD_RUN_V2')}{props['service']}")


def _shares_text(service: Mapping[str, Any]) -> str:
    parts = [f"{percent} % of the traffic goes to {name}" for name, percent in shares(service).items()]
    return ", ".join(parts) or "no revision has traffic"


def _short(revision: object) -> str:
    return str(revision).rpartition("/")[2]


def _unreadable(props: Mapping[str, Any], error: RestError) -> Problem:
    return caused_by(
        error,
        f"traffic of {_short(props['service'])}",
        "it is unknown which revision serves, as the service cannot be read",
        "grant roles/run.viewer to the account that deploys, then run the same command again.",
    )
