"""Interfaces of the checkout in the current folder, as JSON: what users and states see; for `compare_interfaces.py`.

Runs in the environment of a checkout before or after the packages, so it takes modules by the names of either.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import pkgutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# Stack -> configuration beside that of its file.
STACKS: dict[str, tuple[str, dict[str, str]]] = {
    "l4-qat": ("l4-qat", {}),
    "v6e4-moe": ("v6e4-moe", {}),
    "l4-qat, gated": ("l4-qat", {"rollout": "gated"}),
}
# Keys of the table of commands that name functions, or the headings of a help text that is compared itself.
INTERNAL = frozenset({"run", "call", "groups", "operation"})
PLACES = frozenset({"arguments", "options", "tables"})
"""Keys of the table of commands that hold arguments."""
PROGRAM = (
    *("bezel", "bezel_base", "bezel_bench", "bezel_bootstrap", "bezel_catalog", "bezel_components", "bezel_localcloud"),
    *("bezel_simulated_vllm", "bezel_smoke", "bootstrap", "components", "smoke"),
)


def main() -> None:
    """Print the answers."""
    print(
        json.dumps(
            {
                "commands": commands(),
                "exit codes": exit_codes(),
                "operations": operations(),
                "tools of the MCP server": tools(),
                "schemas": {
                    path.name: json.loads(path.read_text()) for path in sorted(Path("docs").glob("*.schema.json"))
                },
                "resources": {name: resources(*stack) for name, stack in STACKS.items()},
            },
            default=str,
        )
    )


def module(*names: str) -> Any:
    """The first of modules that is there."""
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    raise ModuleNotFoundError(" or ".join(names))


def commands() -> dict[str, Any]:
    """The table of commands, with the arguments and the help text of each."""
    joined = module("bezel.cli.command_table", "bezel.cli.argparser")
    if hasattr(joined, "command_table"):
        table = joined.command_table().spec
    else:
        table = tomllib.loads(Path("bezel/cli/commands.toml").read_text())
    helps = {" ".join(command) or "bezel": help_of(command) for command in words_of(table)}
    # Where an argument is written down, in a command or in a table that several have, is nothing that a user sees.
    arguments = {" ".join(command) or "bezel": arguments_of(table, command) for command in words_of(table)}
    return {"table": without(table, INTERNAL | PLACES), "arguments": arguments, "help": helps}


def arguments_of(table: dict[str, Any], command_words: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of a command, with those of the tables that it has."""
    command = table
    for word in command_words:
        command = command["commands"][word]
    tables = [table["tables"][name]["arguments"] for name in command.get("options", ())]
    return {name: keys for part in (command.get("arguments", {}), *tables) for name, keys in part.items()}


def words_of(table: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command."""
    yield above
    for word, inner in table.get("commands", {}).items():
        yield from words_of(inner, (*above, word))


def help_of(command: tuple[str, ...]) -> list[str]:
    """Lines of the help text of a command."""
    root_parser = module("bezel.cli.command_table", "bezel.cli.argparser").root_parser
    written = io.StringIO()
    with contextlib.redirect_stdout(written), contextlib.suppress(SystemExit):
        root_parser().parse_args([*command, "--help"])
    return written.getvalue().splitlines()


def without(value: Any, keys: frozenset[str]) -> Any:
    """A document without some keys, at any depth."""
    if isinstance(value, dict):
        return {key: without(each, keys) for key, each in value.items() if key not in keys}
    return [without(each, keys) for each in value] if isinstance(value, list) else value


def exit_codes() -> dict[str, int]:
    """Name of an error's class -> the exit code of a command that it ends."""
    user_error = module("bezel_base.errors", "bezel.errors").UserError
    for name in PROGRAM:
        with contextlib.suppress(ModuleNotFoundError):
            package = importlib.import_module(name)
            for entry in pkgutil.walk_packages(package.__path__, f"{name}."):
                if not entry.name.endswith("__main__"):
                    importlib.import_module(entry.name)
    return {kind.__name__: kind.exit_code for kind in sorted(below(user_error), key=lambda kind: kind.__name__)}


def below(kind: type[Any]) -> set[type[Any]]:
    """A class and all that derive from it."""
    return {kind, *(deeper for one in kind.__subclasses__() for deeper in below(one))}


def operations() -> dict[str, Any]:
    """Each operation with the schemas of its arguments, result and outcome."""
    from bezel.operations.registry import OPERATIONS

    return {
        each.name: {
            "kind": each.kind,
            "command": each.command,
            "help": each.help,
            "arguments": each.arguments().model_json_schema(),
            "result": each.result().model_json_schema(),
            "outcome": each.outcome().model_json_schema() if each.apply else None,
        }
        for each in OPERATIONS
    }


def tools() -> dict[str, Any]:
    """The tools that a server without limits lists."""
    from bezel.mcp_server.scope import Scope
    from bezel.mcp_server.tools import tool_of

    return {each.name: tool_of(each, Scope()).model_dump(mode="json") for each in Scope().operations()}


def resources(stack: str, changes: dict[str, str]) -> dict[str, Any]:
    """URN -> type, parent and inputs of each resource that the program declares in a first preview."""
    import pytest

    from bezel.planner import make_plan
    from tests.support.components.fake_cloud_run import running
    from tests.support.components.fake_engine import declare

    deploy = module("bezel_stacks.dispatch", "stacks.dispatch").deploy
    project = module("bezel.engine.project.project", "bezel.pulumi_engine.project").Project(Path.cwd())
    plan = make_plan(project.configuration(stack) | changes, project="acme-llm", stack=stack)
    with pytest.MonkeyPatch.context() as patch, running(patch) as cloud:
        cloud.quota = 2
        declared = declare(lambda: deploy(plan), preview=True).all
    return {
        one.urn: {
            "type": one.type,
            "parent": one.parent,
            "inputs": {name: value for name, value in one.inputs.items() if name != "__provider"},
            "protected": one.protected,
            "deleted first": one.deleted_first,
        }
        for one in declared
    }


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    sys.path.extend(map(str, Path.cwd().glob("packages/*/tests")))
    main()
