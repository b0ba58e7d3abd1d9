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

from bezel.pulumi_engine.resource_ids import MAKES_NOTHING

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
    "unexpected EOF",
    "i/o timeout",
    "timeout while waiting",
    "called off",
)
# Google also returns 409 for concurrent operations.
_EXISTS = re.compile(r"Error 409: [^\n]*already (?:exists|own it)|existing object already found", re.IGNORECASE)
_KEPT = 1  # `status` of a failed operation: the resource is in the state, with its error (a partial failure)
# The operation failed, not the request for it: the cloud has the requested values, as the state does.
_TAKEN = ("Error code ", "timeout while waiting for state")
# The text of a smoke check that sees a difference between cloud and state: then the services must be read again.
_ANOTHER = "up --refresh"
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


def unfinished(log: Path, *, ended_too: bool = False) -> list[Change]:
    """The changes that a run began and whose outcome is unknown, in their order; none without a log.

    Args:
        log: The event log.
        ended_too: Include those that ended well, for a state that has lost its record of them.
    """
    begun: dict[str, Change] = {}
    failed: set[str] = set()
    said: dict[str, str] = {}
    for event in _events(log):
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
            kept = event["resOpFailedEvent"].get("status") == _KEPT
            if not (kept and ended_too):
                failed.add(urn)
                if kept and urn in begun:
                    begun[urn] = replace(begun[urn], read=True)
        elif "diagnosticEvent" in event and event["diagnosticEvent"].get("severity") == "error":
            urn = event["diagnosticEvent"].get("urn", "")
            said[urn] = said.get(urn, "") + event["diagnosticEvent"]["message"]
    found = [
        one
        for change in begun.values()
        if change.resource["type"] not in MAKES_NOTHING
        and not change.resource["type"].startswith("pulumi:providers:")
        and (one := _judged(change, failed, said.get(change.urn, "")))
    ]
    another = any(_ANOTHER in said.get(urn, "") for urn in failed)
    return [*found, *(_services(log, {change.urn for change in found}) if another else ())]


def _services(log: Path, but: set[str]) -> list[Change]:
    """The services of a run, changed or not, to be read again, except those in `but`."""
    seen = [_change(event["resourcePreEvent"]["metadata"]) for event in _events(log) if "resourcePreEvent" in event]
    services = {change.urn: change for change in seen if change.resource.get("type") == _SERVICE}
    return [replace(change, kind="updating", read=True) for change in services.values() if change.urn not in but]


def ended(log: Path) -> set[str]:
    """The resources that a run completed, changed or not."""
    return {event["resOutputsEvent"]["metadata"]["urn"] for event in _events(log) if "resOutputsEvent" in event}


def _judged(change: Change, failed: set[str], said: str) -> Change | None:
    if change.read:
        # A create that failed late is in the state with the values of the request.
        return change if change.kind == "updating" and not any(word in said for word in _TAKEN) else None
    if change.urn not in failed or any(word in said for word in _LOST):
        return change
    if change.kind == "creating" and _EXISTS.search(said):
        return replace(change, exists=True)
    return None


def _change(metadata: Mapping[str, Any]) -> Change:
    operation = str(metadata["op"])
    kind = "deleting" if operation.startswith("delete") else "updating" if operation == "update" else "creating"
    shown = metadata.get("new") or metadata.get("old") or {}
    kept = ("urn", "custom", "type", "inputs", "parent", "provider", "protect")
    return Change(metadata["urn"], kind, {key: shown[key] for key in kept if shown.get(key)})


def _events(log: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = log.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the cut last line of a killed engine
        yield event
