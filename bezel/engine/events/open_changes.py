"""Changes with an unknown outcome, read from the engine's event log of a run that did not end well.

The engine itself records only the changes under way when it was killed (pending operations). Where a plugin died, or
the connection to the cloud, it counts the change as failed, even if the resource exists by then. Where an update
failed, its state has the requested values, whatever the cloud has. Leaves out the repair: see `recover`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bezel.engine.state.resource_ids import MAKES_NOTHING
from bezel_base.errors import Problem, UserError
from bezel_base.json_documents import read_json

_CHANGES = frozenset(
    {"create", "create-replacement", "update", "delete", "delete-replaced", "import", "import-replacement"}
)
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
_PARTIAL = 1  # `status` of a failed operation: the resource is in the state, with its error (a partial failure)
# The operation failed, not the request for it: the cloud has the requested values, as the state does.
_ACCEPTED = ("Error code ", "timeout while waiting for state to become 'done: true'")
# The text of a smoke check that sees a difference between cloud and state: then the services must be read again.
_DIFFERS = "up --refresh"
_SERVICE = "gcp:cloudrunv2/service:Service"


@dataclass(frozen=True)
class Change:
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


def unfinished(log: Path, *, ended_too: bool = False) -> list[Change]:
    """The changes that a run began and whose outcome is unknown, in their order; none without a log.

    Args:
        log: The event log.
        ended_too: Include those that ended well, for a state that has lost its record of them.
    """
    begun: dict[str, Change] = {}
    failed: set[str] = set()
    messages: dict[str, str] = {}
    for event in events_in(log):
        if "resourcePreEvent" in event:
            metadata = event["resourcePreEvent"]["metadata"]
            change = _change(metadata)
            if metadata["op"] in _CHANGES and change.resource.get("custom"):
                begun[change.urn] = change
        elif "resOutputsEvent" in event and ended_too:
            failed.discard(event["resOutputsEvent"]["metadata"]["urn"])
        elif "resOutputsEvent" in event:
            begun.pop(event["resOutputsEvent"]["metadata"]["urn"], None)
        elif "resOpFailedEvent" in event:
            urn = event["resOpFailedEvent"]["metadata"]["urn"]
            partial = event["resOpFailedEvent"].get("status") == _PARTIAL
            if not (partial and ended_too):
                failed.add(urn)
                if partial and urn in begun:
                    begun[urn] = replace(begun[urn], read=True)
        elif "diagnosticEvent" in event and event["diagnosticEvent"].get("severity") == "error":
            urn = event["diagnosticEvent"].get("urn", "")
            messages[urn] = messages.get(urn, "") + event["diagnosticEvent"]["message"]
    changes = [
        classified
        for change in begun.values()
        if change.resource["type"] not in MAKES_NOTHING
        and not change.resource["type"].startswith("pulumi:providers:")
        and (classified := _classified(change, failed, messages.get(change.urn, "")))
    ]
    differs = any(_DIFFERS in messages.get(urn, "") for urn in failed)
    return [*changes, *(_services(log, {change.urn for change in changes}) if differs else ())]


def _services(log: Path, excluded: set[str]) -> list[Change]:
    """The services of a run, changed or not, to be read again, except those in `excluded`."""
    begun = (event["resourcePreEvent"] for event in events_in(log) if "resourcePreEvent" in event)
    changes = [_change(event["metadata"]) for event in begun]
    services = {change.urn: change for change in changes if change.resource.get("type") == _SERVICE}
    return [replace(change, kind="updating", read=True) for change in services.values() if change.urn not in excluded]


def diagnostics_in(log: Path) -> list[str]:
    """The messages of a run; none without a log."""
    events = (event["diagnosticEvent"] for event in events_in(log) if "diagnosticEvent" in event)
    return [str(event.get("message", "")) for event in events]


def ended(log: Path) -> set[str]:
    """The resources that a run completed, changed or not."""
    return {event["resOutputsEvent"]["metadata"]["urn"] for event in events_in(log) if "resOutputsEvent" in event}


def _classified(change: Change, failed: set[str], message: str) -> Change | None:
    if change.read:
        # A create that failed late is in the state with the values of the request.
        return change if change.kind == "updating" and not any(text in message for text in _ACCEPTED) else None
    if change.urn not in failed or any(text in message for text in _LOST):
        return change
    if change.kind == "creating" and _EXISTS.search(message):
        return replace(change, exists=True)
    return None


def _change(metadata: Mapping[str, Any]) -> Change:
    operation = str(metadata["op"])
    kind = "deleting" if operation.startswith("delete") else "updating" if operation == "update" else "creating"
    state = metadata.get("new") or metadata.get("old") or {}
    keys = ("urn", "custom", "type", "inputs", "parent", "provider", "protect")
    return Change(metadata["urn"], kind, {key: state[key] for key in keys if state.get(key)})


def events_in(log: Path) -> Iterator[dict[str, Any]]:
    """The events of a run in their order; none without a log.

    Raises:
        UserError: An event is out of the bounds of `read_json`.
    """
    try:
        lines = log.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            event = read_json(line)
        except json.JSONDecodeError:
            continue  # the cut last line of a killed engine
        except ValueError as error:
            # A change that is left out would not be judged.
            consequence = f"an event of the engine cannot be read: {error}. So it is unknown what the run changes."
            repair = "find the resource whose properties hold such a value, and correct the program."
            raise UserError(Problem(str(log), None, consequence, repair)) from None
        yield event
