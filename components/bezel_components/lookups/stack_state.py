"""Lookup of what the last deploys of the running stack have left in its state, before anything is declared.

A program cannot see the state that it is compared with; the engine answers for it as for any stack's. Reads only, in
previews too: before the first deploy there is nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

_FUNCTION = "pulumi:pulumi:readStackResourceOutputs"


@dataclass(frozen=True)
class StateResource:
    """A resource of the state.

    Attributes:
        type: Its type after those of its parents, as in a URN: `a:b:Parent$a:b:Child`.
        name: Its name in the program.
        outputs: Its outputs, by the engine's names.
    """

    type: str
    name: str
    outputs: Mapping[str, Any]


def look_up_state() -> tuple[StateResource, ...] | None:
    """The resources of the running stack's state, without those that wait for their deletion; None if unreadable."""
    stack = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
    try:
        answer = pulumi.runtime.invoke(_FUNCTION, {"stackName": stack}).value or {}
    except Exception as error:  # noqa: BLE001 - the SDK raises bare exceptions for the engine's errors
        pulumi.log.debug(f"the state of {stack} cannot be read: {error}")
        return None
    return tuple(_resource(urn, each) for urn, each in (answer.get("outputs") or {}).items())


def _resource(urn: str, answer: Mapping[str, Any]) -> StateResource:
    """A resource of the answer: `urn:pulumi:STACK::PROJECT::TYPES::NAME`."""
    _, _, types, name = urn.split("::", 3)
    return StateResource(types, name, answer.get("outputs") or {})
