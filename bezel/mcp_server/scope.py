"""Scope of a server: which operations and which stacks its client may use. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bezel.operations.registry import OPERATIONS, Operation
from bezel.operations.schemas import schemas_of

STACK = "stack"
PROJECT = "project"


class OutOfScopeError(Exception):
    """A call that the server's options exclude; the text is for the client."""


@dataclass(frozen=True)
class Scope:
    """What a server serves.

    Attributes:
        read_only: Whether only operations that change nothing are served.
        stacks: The only stacks that calls may name; empty for all.
    """

    read_only: bool = False
    stacks: tuple[str, ...] = ()

    def operations(self) -> tuple[Operation, ...]:
        """The operations that are served.

        With named stacks none that changes what belongs to no stack, and none that shows the leases of a whole project,
        which are those of other stacks too.
        """
        return tuple(each for each in OPERATIONS if self._serves(each))

    def _serves(self, operation: Operation) -> bool:
        if self.read_only and operation.kind != "reading":
            return False
        properties = _properties(operation)
        return not self.stacks or STACK in properties or (operation.kind != "changing" and PROJECT not in properties)

    def input_schema(self, operation: Operation) -> dict[str, Any]:
        """Schema of an operation's arguments; a stack is one of those that may be named."""
        schema = schemas_of(operation.name)["arguments"]
        properties = dict(schema.get("properties") or {})
        if not self.stacks or STACK not in properties:
            return schema
        text = properties[STACK].get("description", "")
        properties[STACK] = {"type": "string", "enum": list(self.stacks), "description": text}
        required = list(schema.get("required") or ())
        if len(self.stacks) == 1:
            properties[STACK]["default"] = self.stacks[0]
            required = [name for name in required if name != STACK]
        elif STACK not in required:
            required.append(STACK)
        return {**schema, "properties": properties, "required": required}

    def arguments(self, operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call: the only stack where none is named.

        Raises:
            OutOfScopeError: It names another stack, or all of them.
        """
        arguments = dict(given)
        if not self.stacks or STACK not in _properties(operation):
            return arguments
        if arguments.get(STACK) is None and len(self.stacks) == 1:
            arguments[STACK] = self.stacks[0]
        if arguments.get(STACK) not in self.stacks:
            raise OutOfScopeError(f"this server serves the stacks {', '.join(self.stacks)} only; name one of them.")
        return arguments


def _properties(operation: Operation) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = schemas_of(operation.name)["arguments"].get("properties") or {}
    return properties
