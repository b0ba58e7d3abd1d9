"""Tools of the server: the list, made from the registry, the guides and the schemas, without importing an operation.

A model pays for each word of the list. So a tool has no schema of its answer: the server checks the model of a result
itself (`calls`), and `bezel/operations/schemas` has the schema.
"""

from mcp_types import Tool, ToolAnnotations

from bezel.mcp_server.listing import listed_schema
from bezel.mcp_server.scope import Scope
from bezel.operations.guides import guide_of
from bezel.operations.operation import Operation
from bezel.operations.registry import operation


def tool_of(listed: Operation, scope: Scope) -> Tool:
    """An operation as a tool."""
    guide = guide_of(listed.name)
    return Tool(
        name=listed.name,
        title=guide.title or listed.command,
        description=description_of(listed, scope),
        input_schema=listed_schema(scope.input_schema(listed), is_long=guide.is_long),
        annotations=annotations_of(listed),
    )


def description_of(described: Operation, scope: Scope) -> str:
    """What a tool does, when it is the one to call, what it costs, and what comes next.

    An operation that is not served is named by its command, which is left to the user.
    """

    def shown_name(name: str) -> str:
        return name if scope.serves(operation(name)) else f"`{operation(name).command_line()}`"

    plans = " (plan only, then confirm)" if described.kind == "changing" else ""
    return f"{described.help}{plans}. {guide_of(described.name).text(shown_name)}".strip()


def annotations_of(listed: Operation) -> ToolAnnotations:
    """What a client is to know before it calls: whether a tool changes something, and whether it can be repeated.

    A changing one plans, and `confirm` changes: but a client that may change nothing needs no plan of a change. The
    hints about changes say nothing of a tool that reads.
    """
    reads_files_only = listed.touches is not None and listed.touches.subject in {"records", "results"}
    is_open = False if reads_files_only else None  # null is the protocol's default: it asks the cloud
    if listed.kind == "reading":
        return ToolAnnotations(read_only_hint=True, open_world_hint=is_open)
    repeats = listed.kind != "job"
    return ToolAnnotations(destructive_hint=False, idempotent_hint=repeats, open_world_hint=is_open)
