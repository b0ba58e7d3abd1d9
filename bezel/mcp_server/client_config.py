"""Configuration of MCP clients, as each of them documents it: where it stands, and what is written there. Pure."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

CLIENTS = ("claude", "claude-desktop", "gemini", "vscode")
_FILES = {
    "claude": ".mcp.json in the project",
    "claude-desktop": "claude_desktop_config.json (Settings, Developer, Edit Config)",
    "gemini": ".gemini/settings.json in the project, or ~/.gemini/settings.json",
    "vscode": ".vscode/mcp.json in the project",
}


def configuration(
    client: str, command: Path, folder: Path, options: Sequence[str], variables: Mapping[str, str]
) -> str:
    """The text for a client's configuration file.

    Args:
        client: One of `CLIENTS`.
        command: Path of the `bezel` command.
        folder: Folder of the Pulumi project.
        options: Options of `bezel mcp`, e.g. `--read-only`.
        variables: Variables that the server needs; no secret may be among them.
    """
    entry: dict[str, object] = {"command": str(command), "args": ["mcp", "--folder", str(folder), *options]}
    if variables:
        entry["env"] = dict(variables)
    if client == "vscode":
        entry = {"type": "stdio", **entry}
    key = "servers" if client == "vscode" else "mcpServers"
    return json.dumps({key: {"bezel": entry}}, indent=2) + "\n"


def place(client: str) -> str:
    """Where a client's configuration stands."""
    return _FILES[client]
