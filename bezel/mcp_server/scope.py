"""Scope of a server: which operations, arguments and stacks its client may use, by the registry. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bezel.operations.operation import Operation
from bezel.operations.registry import OPERATIONS
from bezel.operations.schemas import schemas_of
from bezel.operations.touches import STACK


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

        With named stacks only those that touch a stack, records or results; none that touches the project, and none
        that the registry does not classify.
        """
        return tuple(each for each in OPERATIONS if self.serves(each))

    def serves(self, operation: Operation) -> bool:
        """Whether a client may call an operation."""
        if self.read_only and operation.kind != "reading":
            return False
        touches = operation.touches
        return not self.stacks or (touches is not None and touches.subject != "project")

    def input_schema(self, operation: Operation) -> dict[str, Any]:
        """Schema of an operation's arguments: those that may be given, and a stack that is one of those served."""
        schema: dict[str, Any] = schemas_of(operation.name)["arguments"]
        if not self.stacks:
            return schema
        allowed = [name for name in _properties(operation) if _allows(operation, name)]
        properties = {name: _properties(operation)[name] for name in allowed}
        required = [name for name in schema.get("required") or () if name in properties]
        if STACK in properties:
            text = properties[STACK].get("description", "")
            properties[STACK] = {"type": "string", "enum": list(self.stacks), "description": text}
            required = [name for name in required if name != STACK]
            if len(self.stacks) == 1:
                properties[STACK]["default"] = self.stacks[0]
            else:
                required.append(STACK)
        return {**schema, "properties": properties, "required": required}

    def arguments(self, operation: Operation, raw_arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call: the only stack where none is named.

        Raises:
            OutOfScopeError: It names another stack, or all of them, or has an argument that reaches beyond a stack.
        """
        arguments = dict(raw_arguments)
        if not self.stacks:
            return arguments
        served = ", ".join(self.stacks)
        # One that does not exist at all is left to the model of the arguments, whose message says what to write.
        stack_arguments = [name for name in arguments if name in _properties(operation)]
        if beyond := [name for name in stack_arguments if not _allows(operation, name) and arguments[name] is not None]:
            text = f"{operation.name} takes no {', '.join(beyond)} here: this server serves the stacks {served} only."
            raise OutOfScopeError(text)
        if operation.touches is None or operation.touches.subject != "stack":
            return arguments
        if arguments.get(STACK) is None and len(self.stacks) == 1:
            arguments[STACK] = self.stacks[0]
        if arguments.get(STACK) not in self.stacks:
            raise OutOfScopeError(f"this server serves the stacks {served} only; name one of them.")
        return arguments


def _allows(operation: Operation, argument: str) -> bool:
    return operation.touches is not None and argument in schemas_of(operation.name)["arguments_inside"]


def _properties(operation: Operation) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = schemas_of(operation.name)["arguments"].get("properties") or {}
    return properties
