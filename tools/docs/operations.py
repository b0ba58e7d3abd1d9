"""Schemas, commands and documents that are made of the registry of operations and of the models of arguments.

python -m tools.docs.operations NAME       a table of docs/operations.md, as Markdown
python -m tools.docs.operations --write    puts all of them into docs/operations.md and docs/operation-arguments.md, and
                                           writes the schemas and the commands that bezel/operations keeps
"""

import json
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

from bezel.cli.command_table import command_table, shown_names
from bezel.operations.guides import guide_of
from bezel.operations.operation import Operation
from bezel.operations.registry import OPERATIONS, operation
from bezel_base.command_line.exit_codes import format_exit_codes
from bezel_base.command_line.parser import Spec
from tools.docs.generated_sections import ROOT, put, table
from tools.docs.operation_commands import arguments_inside, commands, help_text

SCHEMAS = ROOT / "bezel" / "operations" / "schemas"
POLICIES = ROOT / "bezel" / "operations" / "explain" / "policies.json"
COMMANDS = ROOT / "bezel" / "operations" / "commands.json"
DOCUMENT = ROOT / "docs" / "operations.md"
ARGUMENTS = ROOT / "docs" / "operation-arguments.md"
TASKS = ROOT / "tests" / "mcp_server" / "tasks.toml"
HELP = "bezel --help"
# Tool of the seed systems -> the operation, or the other command of `bezel`, that does it; None: there is none yet.
# A pair is a command for people, and the operation that tells an agent what a person runs.
SEED_TOOLS: dict[str, str | tuple[str, str] | None] = {
    "deploy a service": "deploy",
    "destroy a service": "destroy",
    "scale a service": "scale",
    "status of a service": "status",
    "deployment configuration before it is applied": "config",
    "save the Hugging Face token": ("bezel secret set", "secret_show"),
    "endpoint": "endpoint",
    "models in a bucket": "model_files",
    "models in the Vertex registry": "model_files",
    "copy a model from Hugging Face to the bucket": "weights_copy",
    "copy a model from Model Garden to the bucket": "weights_copy",
    "GPU quotas": "quota",
    "TPU quotas": "quota",
    "zones with available quota": "zones",
    "find a TPU: where it exists, is accepted and has quota": "zones",
    "find a TPU: a request in zone after zone, until one is granted": "deploy",
    "create a queued resource": "tpu_create",
    "list queued resources": "tpu_list",
    "describe a queued resource": "tpu_describe",
    "destroy a queued resource": "tpu_delete",
    "reservation status": "status",
    "start, stop and restart the container": "container",
    "status of the container": "status",
    "log of the container": "logs",
    "system logs": "logs",
    "Cloud Logging": "logs",
    "log analysis by the model": "analyze_logs",
    "remediation advice by the model": "advise",
    "verify model health by a completion": "query",
    "model details": "models",
    "active models": "models",
    "system status": "status",
    "metrics explained": "metrics",
    "memory layout": "memory",
    "query": "query",
    "query with stats": "query",
    "run a benchmark": "bench_run",
    "full sweep": "bench_sweep",
    "report with charts": "bench_report",
    "compare hardware": "compare",
    "compare models": "compare",
    "cost estimate": "cost",
    "cost per million tokens": "cost",
    "cost comparison over platforms": "compare",
    "help": HELP,
}
# Test of a tool that the one of its operation does not show.
TESTS = {
    "find a TPU: a request in zone after zone, until one is granted": "tests/leases/test_controller.py",
    "help": "tests/mcp_server/test_server.py",
}


def counterparts() -> str:
    """Rows of the seeds' tools: command, MCP tool, test."""
    rows = []
    for tool, named in SEED_TOOLS.items():
        own_command, name = named if isinstance(named, tuple) else ("", named)
        if name is None:
            rows.append((tool, "not yet", "", ""))
        elif name == HELP:
            rows.append((tool, f"`{name}`", "the list of tools, `bezel://docs/operations`", f"`{TESTS[tool]}`"))
        else:
            each = operation(name)
            module = each.function.partition(":")[0].rpartition(".")[2]
            test = TESTS.get(tool, f"tests/operations/test_{module}.py")
            rows.append((tool, f"`{own_command or f'bezel {each.command}'}`", f"`{each.name}`", f"`{test}`"))
    return table(("tool of the seed systems", "command", "MCP tool", "test"), rows)


def operations() -> str:
    """Rows of operations: command, kind, what it does."""
    rows = [(f"`bezel {each.command}`", each.kind, each.help) for each in OPERATIONS]
    return table(("command", "kind", "what it does"), rows)


def arguments() -> str:
    """A section for each operation: its arguments by their names on the command line and in the tool."""
    return "\n".join(_arguments_of(each) for each in OPERATIONS)


def _arguments_of(each: Operation) -> str:
    names = shown_names(each.name)
    rows = []
    for name, field in each.arguments().model_fields.items():
        shown = f"`{names[name]}`" if name in names else ""
        rows.append((shown, f"`{name}`", help_text(field)))
    guide = guide_of(each.name).text(lambda name: f"`{operation(name).command_line()}`")
    heading = f"## `bezel {each.command}`\nTool `{each.name}`: {each.help}. {guide}\n\n"
    return heading + (table(("command line", "tool", "what it is"), rows) if rows else "It has no arguments.\n")


def exit_codes() -> str:
    """The codes of every command of `bezel`, then rows of the commands that have others, or whose codes mean more."""
    rows = [
        (f"`{command_line}`", "; ".join(f"{code} {meaning}" for code, meaning in sorted(spec["exit_codes"].items())))
        for command_line, spec in _commands("bezel", command_table().spec)
        if "exit_codes" in spec
    ]
    return f"{format_exit_codes({})}\n\n" + table(("command", "its own exit codes"), rows)


def _commands(program: str, spec: Spec) -> Iterator[tuple[str, Spec]]:
    for word, command in spec.get("commands", {}).items():
        yield f"{program} {word}", command
        yield from _commands(f"{program} {word}", command)


def tasks() -> str:
    """Rows of what users ask an agent, and the call that each needs first."""
    rows = []
    for task in tomllib.loads(TASKS.read_text(encoding="utf-8"))["task"]:
        arguments = ", ".join(f"{name}: {json.dumps(value)}" for name, value in task.get("arguments", {}).items())
        star = " *" if task.get("held_back") else ""
        rows.append((f"{task['words']}{star}", f"`{task['tool']}`", f"`{arguments}`" if arguments else ""))
    return table(("task", "tool", "arguments"), rows)


def tables() -> dict[str, str]:
    """Name of a generated section of docs/operations.md -> its content."""
    return {
        "operations": operations(),
        "exit-codes": exit_codes(),
        "tasks": tasks(),
        "counterparts": counterparts(),
    }


def schemas(each: Operation) -> str:
    """The schemas of an operation's arguments and result, as the file holds them; of a changing one, its outcome's."""
    arguments = without_titles(each.arguments().model_json_schema(mode="validation"))
    result: dict[str, Any] = each.result().model_json_schema(mode="serialization")
    content = {
        "arguments": arguments,
        "arguments_inside": [*arguments_inside(each.arguments())],
        "exit_codes": {str(code): meaning for code, meaning in each.all_exit_codes().items()},
        "result": result,
    }
    if each.apply:
        content["outcome"] = each.outcome().model_json_schema(mode="serialization")
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def without_titles(schema: Any) -> Any:
    """A schema without titles: they repeat names, and a model pays for each word of the list of tools."""
    if isinstance(schema, dict):
        return {
            key: without_titles(part) for key, part in schema.items() if not (key == "title" and isinstance(part, str))
        }
    return [without_titles(part) for part in schema] if isinstance(schema, list) else schema


def write_schemas() -> None:
    """Write the file of each operation, and remove those of none."""
    for file in SCHEMAS.glob("*.json"):
        file.unlink()
    for each in OPERATIONS:
        (SCHEMAS / f"{each.name}.json").write_text(schemas(each), encoding="utf-8")


def policy_records() -> str:
    """The policies of all packs as `bezel explain` reads them."""
    from tools.docs.policy_tables import policy_records as made  # a second, which the tables do not need

    return json.dumps(made(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_schemas()
        COMMANDS.write_text(commands(), encoding="utf-8")
        POLICIES.write_text(policy_records(), encoding="utf-8")
        for name, content in tables().items():
            put(DOCUMENT, f"tools.docs.operations {name}", content)
        put(ARGUMENTS, "tools.docs.operations arguments", arguments())
    else:
        sys.stdout.write((tables() | {"arguments": arguments()})[sys.argv[1]])
