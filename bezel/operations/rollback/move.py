"""Move of a service's traffic to one revision, with the record of it: one PATCH under the etag of the service as read.

Cloud Run carries the PATCH out as a whole, so a kill or a lost response leaves the old traffic or the new one with its
record, never a part. What became of it is what the service says afterwards, whatever the operation said: an operation
also reports a newest revision that failed earlier.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bezel.diagnosis.revision_traffic import Target, shares
from bezel.operations.context import Context
from bezel.operations.rollback.choice import short
from bezel.outside_changes.rollback import ANNOTATION, Rollback
from bezel.rest import ApiError, RestError
from bezel_base.errors import Problem, UserError, caused_by, one_line

_ATTEMPTS = 5
_LOOK_SECONDS = 1.0
_MOST_SECONDS = 300.0
# Statuses of the API for a service that changed since it was read.
_CHANGED = frozenset({409, 412})
_MASK = "traffic,annotations"


class NotMovedError(UserError):
    """The traffic was not moved, or it is unknown whether it was."""


def move(
    context: Context,
    name: str,
    read: Callable[[], Mapping[str, Any]],
    rollback: Rollback,
    say: Callable[[str], None],
) -> Mapping[str, Any]:
    """Move all traffic to the revision of a rollback, and record it; the service afterwards.

    Args:
        context: The context.
        name: `projects/P/locations/L/services/S`.
        read: Reads the service, and refuses one that has changed since the rollback was planned.
        rollback: The rollback.
        say: Called with each line of progress.

    Raises:
        ChangedError: As of `read`.
        NotMovedError: It was not moved, or that is unknown.
    """
    url = f"{context.address('CLOUD_RUN_V2')}{name}"
    for number in range(1, _ATTEMPTS + 1):
        service = read()
        if is_moved(service, rollback):
            return service
        say(f"moving the traffic of {short(name)} to {rollback.revision}")
        try:
            operation = context.google.request(
                "PATCH", url, params={"updateMask": _MASK}, json=body_of(service, rollback), idempotent=True
            )
        except ApiError as error:
            if error.status in _CHANGED and number < _ATTEMPTS:
                context.cancelled.wait(_LOOK_SECONDS)
                continue
            message = str(error)
            if error.status < 500:
                raise NotMovedError(_refusal(name, rollback, error)) from None
        except RestError as error:
            message = one_line(error)
        else:
            message = _wait_for_end(context, operation, say)
        return _moved_service(context, url, rollback, message)
    raise AssertionError("the last attempt returns or raises")


def body_of(service: Mapping[str, Any], rollback: Rollback) -> dict[str, Any]:
    """The body of the PATCH: all traffic to the revision, the tags as they are, and the record."""
    return {
        "traffic": [target.as_json() for target in targets_of(service, rollback.revision)],
        "annotations": {**(service.get("annotations") or {}), ANNOTATION: rollback.text()},
        "etag": service.get("etag", ""),
    }


def targets_of(service: Mapping[str, Any], revision: str) -> tuple[Target, ...]:
    """All traffic to a revision by its name; every tag keeps its own address."""
    tags = [
        Target(short(target.get("revision")), 0, str(target["tag"]))
        for target in service.get("traffic") or ()
        if target.get("tag")
    ]
    return Target(revision, 100), *tags


def is_moved(service: Mapping[str, Any], rollback: Rollback) -> bool:
    """Whether this very rollback is recorded, and its revision has all traffic: declared, and in force."""
    recorded = (service.get("annotations") or {}).get(ANNOTATION) == rollback.text()
    routed = {short(each.get("revision")) for each in service.get("trafficStatuses") or () if each.get("percent")}
    return recorded and shares(service) == {rollback.revision: 100} and routed == {rollback.revision}


def _wait_for_end(context: Context, operation: Mapping[str, Any], say: Callable[[str], None]) -> str:
    """Wait for the end of an operation; what it says of a failure, "" for none."""
    waited = 0.0
    while not operation.get("done"):
        if waited >= _MOST_SECONDS:
            return f"Cloud Run has not moved it after {waited:g} s, and still may"
        if context.cancelled.wait(_LOOK_SECONDS):
            return "cancelled while Cloud Run moves it, which it does nevertheless"
        waited += _LOOK_SECONDS
        if waited % 15 == 0:
            say(f"Cloud Run moves the traffic, {waited:g} s")
        try:
            operation = context.google.get(f"{context.address('CLOUD_RUN_V2')}{operation['name']}")
        except RestError as error:
            return f"its operation cannot be read: {one_line(error)}"
    return str((operation.get("error") or {}).get("message") or "")


def _moved_service(context: Context, url: str, rollback: Rollback, message: str) -> Mapping[str, Any]:
    """The service after the attempt.

    Raises:
        NotMovedError: Its traffic was not moved, or it cannot be read.
    """
    again = "run the same command again: it begins with where the traffic goes then."
    what = f"traffic to {rollback.revision}"
    try:
        service = context.google.get(url)
    except RestError as error:
        consequence = "whether it was moved is unknown, as the service cannot be read"
        raise NotMovedError(
            caused_by(error, what, f"{consequence} ({message})" if message else consequence, again)
        ) from None
    if is_moved(service, rollback):
        return service
    serving = ", ".join(f"{percent} % to {name}" for name, percent in shares(service).items())
    consequence = f"it was not moved ({message or 'something else moved it back'}); the traffic goes {serving}."
    raise NotMovedError(Problem(what, None, consequence, again))


def _refusal(name: str, rollback: Rollback, error: ApiError) -> Problem:
    repair = "run the same command again."
    if error.status == 403:
        repair = "roll back as an account with roles/run.developer; in a protected environment its pipeline has it."
    if error.status == 429:
        repair = "Google limits the requests of the project: run the same command again in a minute."
    return caused_by(error, f"traffic of {short(name)}", f"it was not moved to {rollback.revision}", repair)
