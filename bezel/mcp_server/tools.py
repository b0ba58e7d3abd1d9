"""Tools of the server: the list, made from the registry and the schemas, without importing an operation."""

from mcp_types import Tool, ToolAnnotations

from bezel.mcp_server.scope import Scope
from bezel.mcp_server.two_steps import output_schema
from bezel.operations.operation import Operation
from bezel.operations.schemas import schemas_of


def tool_of(operation: Operation, scope: Scope) -> Tool:
    """An operation as a tool."""
    changes = operation.kind == "changing"
    return Tool(
        name=operation.name,
        title=operation.command or operation.name.replace("_", " "),
        description=f"{operation.help}; this call plans only" if changes else operation.help,
        input_schema=scope.input_schema(operation),
        output_schema=output_schema(operation) if changes else schemas_of(operation.name)["result"],
        annotations=annotations_of(operation),
    )


def annotations_of(operation: Operation) -> ToolAnnotations:
    """What a client is to know before it calls: a tool that reads is safe to repeat."""
    # A changing one plans, and `confirm` changes: but a client that may change nothing needs no plan of a change.
    is_reading = operation.kind == "reading"
    return ToolAnnotations(
        read_only_hint=is_reading,
        destructive_hint=False,
        idempotent_hint=operation.kind != "job",
        open_world_hint=True,
    )
