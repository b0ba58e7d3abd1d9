"""Changes with an unknown outcome after a run of the engine that did not end well. Pure.

The engine itself records only the changes under way when it was killed (pending operations). Where a plugin died, or
the connection to the cloud, it counts the change as failed, even if the resource exists by then. Where an update
failed, its state has the requested values, whatever the cloud has. Leaves out the repair (bezel.engine.recover).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bezel.engine.events.values import PROVIDERS, Events, Step
from bezel.engine.state.resource_ids import MAKES_NOTHING

# The plugin or the connection to the cloud died. After any other failure the change is known not to have happened.
_LOST = (
    "error reading from server",
    "code = Unavailable",
    "does not answer",
    "connection refused",
    "connection reset",
    "broken pipe",
    '": EOF',
    "unexpected EOF",
    "i/o timeout",
    "context deadline exceeded",
    "error while retrieving operation",
    "timeout while waiting",
    "called off",
)
# Google also returns 409 for concurrent operations.
_EXISTS = re.compile(
    r"Error 409: [^\n]*already (?:exists|own it)|existing object already found|already exists and must be imported",
    re.IGNORECASE,
)
# The operation failed, not the request for it: the cloud has the requested values, as the state does.
_ACCEPTED = ("Error code ", "timeout while waiting for state to become 'done: true'")
# The text of a smoke check that sees a difference between cloud and state: then the services must be read again.
_DIFFERS = "up --refresh"
_SERVICE = "gcp:cloudrunv2/service:Service"


@dataclass(frozen=True)
class OpenChange:
    """A change with an unknown outcome.

    Attributes:
        urn: URN of the resource.
        kind: "creating", "updating" or "deleting", as in the state.
        resource: The resource's entry in the state, without its id; without dependencies, which the log lacks.
        exists: Google refused to create it because it exists already.
        read: Nothing is lost, but the state may differ from the cloud: the resource must be read again.
    """

    urn: str
    kind: str
    resource: Mapping[str, Any]
    exists: bool = False
    read: bool = False

    @property
    def name(self) -> str:
        """The resource's logical name."""
        return self.urn.rpartition("::")[2]


def unfinished_changes(events: Events, *, ended_too: bool = False) -> list[OpenChange]:
    """The changes that a run began and whose outcome is unknown, in their order.

    Args:
        events: Of the run.
        ended_too: Include those that ended well, for a state that has lost its record of them.
    """
    messages: dict[str, str] = {}
    for item in events.diagnostics:
        if item.severity == "error":
            messages[item.urn] = f"{messages.get(item.urn, '')}{item.message}\n"
    begun = [_from_lost_state(step) if ended_too else step for step in events.steps if ended_too or not step.ended]
    changes = [
        change
        for step in begun
        if step.entry["type"] not in MAKES_NOTHING
        and not step.entry["type"].startswith(PROVIDERS)
        and (change := _classify(step, messages.get(step.urn, "")))
    ]
    differs = any(_DIFFERS in messages.get(step.urn, "") for step in begun if step.failed)
    return [*changes, *(_services(events, {change.urn for change in changes}) if differs else ())]


def _from_lost_state(step: Step) -> Step:
    """A step as it counts for a state without its record: what ended, also with an error, may be in the cloud."""
    return replace(step, ended=False, failed=step.failed and not (step.ended or step.partial), partial=False)


def _services(events: Events, excluded: Collection[str]) -> list[OpenChange]:
    """The services of a run, changed or not, to be read again, except those in `excluded`."""
    services = (item for item in {**events.before, **events.after}.values() if item.type == _SERVICE)
    return [
        OpenChange(item.urn, "updating", {"urn": item.urn, "custom": item.custom, "type": item.type}, read=True)
        for item in services
        if item.urn not in excluded
    ]


def _classify(step: Step, message: str) -> OpenChange | None:
    change = OpenChange(step.urn, step.kind, step.entry)
    if step.partial:
        # A create that failed late is in the state with the values of the request.
        is_refused = step.kind == "updating" and not any(text in message for text in _ACCEPTED)
        return replace(change, read=True) if is_refused else None
    if not step.failed or any(text in message for text in _LOST):
        return change
    if step.kind == "creating" and _EXISTS.search(message):
        return replace(change, exists=True)
    return None
