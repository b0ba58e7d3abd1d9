"""Revisions of a stack that passed their check, and the rollback that its last gated rollout ended, by its state. Pure.

The state is the one place that knows both: Cloud Run has no field for a check, and a revision cannot be changed.
"""

from collections.abc import Mapping
from typing import Any

from bezel.diagnosis.passed import TOKENS, passed_in
from bezel.operations.deployment.deployment import Deployment
from bezel.outside_changes.declared import SWITCH
from bezel.outside_changes.rollback import Rollback, in_force


def passed_revisions(deployment: Deployment) -> dict[str, dict[str, Any]]:
    """Short name of each revision that passed -> what its check kept: `model` and `start`. The newest last."""
    by_name: dict[str, dict[str, Any]] = {}
    for outputs in _outputs(deployment, *TOKENS):
        for entry in passed_in(outputs):
            by_name[str(entry.get("revision") or "").rpartition("/")[2]] = entry
    return {name: entry for name, entry in by_name.items() if name}


def ended_rollback(deployment: Deployment) -> str:
    """Time of the rollback that the last gated rollout ended, "" without one."""
    return next(
        (str(outputs.get("ended") or "") for outputs in _outputs(deployment, SWITCH, "bezel:components:TrafficSwitch")),
        "",
    )


def rollback_of(deployment: Deployment, live: Mapping[str, Any] | None) -> Rollback | None:
    """The rollback that is in force; None without one.

    Args:
        deployment: The stack.
        live: Its service in run v2's description; None where Cloud Run has none.
    """
    return None if live is None else in_force(live, ended_rollback(deployment))


def _outputs(deployment: Deployment, *types: str) -> list[Mapping[str, Any]]:
    """Outputs of resources of these types; those of another region's service are none of this one's."""
    service = deployment.service
    own_names = {None, ""} | ({service.id} if service else set())
    outputs = [
        each.get("outputs") or {}
        for each in deployment.resources
        if each.get("type") in types and not each.get("delete")
    ]
    return [each for each in outputs if not deployment.region or each.get("service") in own_names]
