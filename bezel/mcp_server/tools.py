"""Tools of the server: the list, made from the registry, the guides and the schemas, without importing an operation.

A model pays for each word of the list. So a tool has no schema of its answer: the server checks the model of a result
itself (`calls`), and `bezel/operations/schemas` has the schema.
"""

from mcp_types import Tool, ToolAnnotations

from bezel.mcp_server.listing import listed_schema
from bezel.mcp_server.scope import Scope
from bezel.operations.guides import guide_of
from bezel.operations.operation import Operation


def tool_of(operation: Operation, scope: Scope) -> Tool:
    """An operation as a tool."""
    guide = guide_of(operation.name)
    return Tool(
        name=operation.name,
        title=guide.title or operation.command,
        description=description_of(operation),
        input_schema=listed_schema(scope.input_schema(operation), is_long=guide.is_long),
        annotations=annotations_of(operation),
    )


def description_of(operation: Operation) -> str:
    """What a tool does, when it is the one to call, what it costs, and what comes next."""
    plans = " (plan only, then confirm)" if operation.kind == "changing" else ""
    return f"{operation.help}{plans}. {guide_of(operation.name).text(lambda name: name)}".strip()


def annotations_of(operation: Operation) -> ToolAnnotations:
    """What a client is to know before it calls: whether a tool changes something, and whether it can be repeated.

    A changing one plans, and `confirm` changes: but a client that may change nothing needs no plan of a change. The
    hints about changes say nothing of a tool that reads.
    """
    reads_files_only = operation.touches is not None and operation.touches.subject in {"records", "results"}
    is_open = False if reads_files_only else None  # null is the protocol's default: it asks the cloud
    if operation.kind == "reading":
        return ToolAnnotations(read_only_hint=True, open_world_hint=is_open)
    repeats = operation.kind != "job"
    return ToolAnnotations(destructive_hint=False, idempotent_hint=repeats, open_world_hint=is_open)
