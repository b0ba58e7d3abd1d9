"""Reconcile changes whose outcome is unknown: a plan over the stack's exported state, without I/O.

A create is entered into the state under the id that follows from its inputs, and then refreshed from the cloud: an
existing resource stays, with the cloud's values, and a missing one is dropped again. (The engine's own
`refresh --import-pending-creates` drops the entry and imports nothing, in 3.259.) Changes of another kind are
refreshed in place. Leaves out running anything: see `recover`.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bezel.engine.events.open_changes import OpenChange
from bezel.engine.state.resource_ids import MAKES_NOTHING, derived_id, is_harmless

State = dict[str, Any]
MASKED = "[secret]"
"""A secret's ciphertext in the engine's events."""


@dataclass
class Recovery:
    """The changed state, and the resources to be read from the cloud.

    Attributes:
        state: The exported state with nothing pending and every possible resource in it.
        creates: urn -> id of resources that may have been made.
        targets: Resources to refresh.
        unknown: Changes whose resource has no derivable id, or a secret that is not known: the user has to look for it.
        orphans: Ids of resources that may have been made, but whose parent or provider has left the state.
    """

    state: State
    creates: dict[str, str] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)
    unknown: list[OpenChange] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)


def pending(state: Mapping[str, Any]) -> list[OpenChange]:
    """The pending operations of an exported state."""
    operations = state["deployment"].get("pending_operations") or []
    return [OpenChange(item["resource"]["urn"], item["type"], item["resource"]) for item in operations]


def plan_recovery(state: State, changes: Iterable[OpenChange], project: str | None) -> Recovery:
    """Plan the recovery from `changes`.

    Args:
        state: The output of `pulumi stack export`; it is not modified.
        changes: At most one for each resource.
        project: The Google Cloud project of resources that name none.
    """
    result = Recovery(copy.deepcopy(state))
    deployment = result.state["deployment"]
    deployment.pop("pending_operations", None)
    resources: list[State] = deployment.setdefault("resources", [])
    for change in changes:
        if change.resource["type"] in MAKES_NOTHING:
            continue
        if change.kind == "creating" and is_harmless(change.resource["type"], change.resource.get("inputs") or {}):
            continue
        if change.kind == "creating":
            _adopt(result, resources, change, project)
        elif any(item["urn"] == change.urn for item in resources):
            result.targets += [change.urn, *(_dependents(resources, change.urn) if change.read else ())]
    return result


def _dependents(resources: Iterable[State], urn: str) -> list[str]:
    """The resources in the cloud that depend on a resource: a deleted service took the grants on it along.

    (The engine's own `--target-dependents` fails on those whose provider is no target, in 3.274.)
    """
    return [
        item["urn"]
        for item in resources
        if item.get("custom") and urn in (item.get("dependencies") or ()) and item["type"] not in MAKES_NOTHING
    ]


def undo_replacement(state: State, before: State, creates: Iterable[str]) -> State | None:
    """Restore the old resource where the refresh showed that its replacement was never made.

    Args:
        state: The state after the refresh.
        before: The state exported before the recovery.
        creates: URNs of the creates that were looked for.

    Returns:
        The corrected state, or None where there is nothing to correct.
    """
    result = copy.deepcopy(state)
    present = {
        (item["urn"], item.get("id")) for item in before["deployment"].get("resources", []) if not item.get("delete")
    }
    resources = result["deployment"].get("resources", [])
    there = {item["urn"] for item in resources if not item.get("delete")}
    lost = [
        item
        for item in resources
        if item["urn"] in set(creates) - there and item.get("delete") and (item["urn"], item.get("id")) in present
    ]
    for item in lost:
        del item["delete"]
    return result if lost else None


def ids_by_urn(state: Mapping[str, Any]) -> dict[str, str]:
    """URN -> id of the resources that a state holds."""
    resources = state["deployment"].get("resources", [])
    return {item["urn"]: item.get("id", "") for item in resources if not item.get("delete")}


def _has_masked(value: object) -> bool:
    if isinstance(value, Mapping):
        return value.get("ciphertext") == MASKED or any(map(_has_masked, value.values()))
    return isinstance(value, list) and any(map(_has_masked, value))


def _adopt(result: Recovery, resources: list[State], change: OpenChange, project: str | None) -> None:
    kind, inputs = str(change.resource["type"]), change.resource.get("inputs", {})
    resource_id = derived_id(kind, inputs, project)
    # The event log masks secrets: inputs with one cannot be written into a state.
    if resource_id is None or _has_masked(inputs):
        result.unknown.append(change)
        return
    there = {item["urn"] for item in resources}
    owners = {str(change.resource.get("provider") or "").rpartition("::")[0], str(change.resource.get("parent") or "")}
    if not owners - {""} <= there:
        result.orphans.append(resource_id)  # a destroy came between
        return
    old = next(
        (index for index, item in enumerate(resources) if item["urn"] == change.urn and not item.get("delete")), None
    )
    result.creates[change.urn] = resource_id
    result.targets.append(change.urn)
    replaced_first = old is not None and bool(resources[old].get("pendingReplacement"))
    if old is not None and resources[old].get("id") == resource_id and not replaced_first:
        return
    # Inputs as outputs: the provider then reads the resource with them, instead of importing it with its defaults.
    entry = {key: value for key, value in change.resource.items() if key not in ("delete", "initErrors")}
    entry |= {"custom": True, "id": resource_id, "inputs": inputs, "outputs": {**inputs, "id": resource_id}}
    # A deleted dependency must not be named any more.
    entry["dependencies"] = [urn for urn in entry.get("dependencies") or () if urn in there]
    entry["propertyDependencies"] = {
        key: [urn for urn in urns or () if urn in there]
        for key, urns in (entry.get("propertyDependencies") or {}).items()
    }
    if old is None:
        resources.append(entry)
    elif replaced_first:
        resources[old] = entry  # the old one is deleted already; its entry only announced the new one
    else:
        # Create before delete: the old one is to be deleted next, as after a create that ended well.
        resources[old]["delete"] = True
        resources.insert(old, entry)
