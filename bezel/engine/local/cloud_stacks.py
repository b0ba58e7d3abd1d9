"""Stacks that are deployed on a localcloud: those of every project by their states, and services that no state has.

A state outlives a reset of the cloud, so a stack counts by what of it exists there. Leaves out ending localcloud.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bezel.engine.state.folder import states_in

# Kinds of the inventory that answer requests or run, and cost money in Google's cloud.
_RUNNING = ("services", "nodes", "instances", "queuedResources")


@dataclass(frozen=True)
class CloudStacks:
    """What is deployed on a localcloud.

    Attributes:
        stacks: Project and name of each stack, sorted.
        others: Running resources where no stack has anything: made by hand, or by stacks whose states are elsewhere.
    """

    stacks: tuple[tuple[str, str], ...]
    others: tuple[str, ...]

    def text(self, project: str) -> str:
        """What is deployed, for a reader in a project; "" for nothing."""
        names = [stack if owner == project else f"{stack} of the project {owner}" for owner, stack in self.stacks]
        names += [f"{name} (in no stack's state)" for name in self.others]
        return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} deployed on it" if names else ""


def cloud_stacks(state: Path, inventory: Mapping[str, Iterable[str]]) -> CloudStacks:
    """What is deployed on a localcloud.

    Args:
        state: The folder of the file backend.
        inventory: Names of the resources that exist, by kind, as `control.inventory` has them.
    """
    existing = {name for names in inventory.values() for name in names}
    states = [(project, stack, latest, _names(latest)) for project, stack, latest in states_in(state)]
    # One with an operation that never ended may have made what its state does not name.
    stacks = [
        (project, stack)
        for project, stack, latest, names in states
        if latest.get("pending_operations") or names & existing
    ]
    running = {name for kind in _RUNNING for name in inventory.get(kind, ())}
    ids = frozenset[str]().union(*(names for *_, names in states))
    services = set(inventory.get("services", ())) - ids
    return CloudStacks(tuple(sorted(stacks)), tuple(sorted(services if stacks else running)))


def _names(latest: Mapping[str, Any]) -> frozenset[str]:
    """Names of a stack's resources as the inventory has them: ids, and of an account its e-mail."""
    ids = [str(item["id"]) for item in latest.get("resources") or () if item.get("id")]
    return frozenset(ids) | {each.rpartition("/")[2] for each in ids if "/serviceAccounts/" in each}
