"""`bezel mcp`: serves the operations to an MCP client, and prints the configuration of clients."""

import argparse
import os
import re
import sys
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from bezel.engine.project.folder import project_folder
from bezel_base.console import note, say
from bezel_base.errors import Problem, UserError

# Variables that name places and identities.
_PASSED_ON = re.compile(
    r"PULUMI_BACKEND_URL|GOOGLE_CLOUD_PROJECT|GOOGLE_PROJECT|GOOGLE_APPLICATION_CREDENTIALS|GOOGLE_\w+_CUSTOM_ENDPOINT"
)


def serve(options: argparse.Namespace) -> Literal[0]:
    """Serve one client on standard input and output until it closes them; return the exit code.

    Raises:
        UserError: There is no Pulumi project in the folder.
    """
    folder = _folder(options)
    from bezel.mcp_server.scope import Scope
    from bezel.mcp_server.server import serve as serve_client

    if sys.stdin.isatty():
        note("serving the Model Context Protocol on standard input; `bezel mcp config` configures a client.")
    serve_client(folder, Scope(options.read_only, tuple(options.stack)))
    return 0


def config(options: argparse.Namespace) -> Literal[0]:
    """Print a client's configuration; return the exit code.

    Raises:
        UserError: There is no Pulumi project in the folder.
    """
    from bezel.mcp_server.client_config import configuration, place
    from bezel_base.text.redaction import redact

    chosen = [*(["--read-only"] if options.read_only else []), *(f"--stack={stack}" for stack in options.stack)]
    variables = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name) and value}
    # A backend's address may hold a password.
    secret = {name for name, value in variables.items() if redact(value) != value or "@" in urlsplit(value).netloc}
    for name in sorted(secret):
        note(f"{name} is left out, as it holds a credential: set it in the client's own environment.")
    variables = {name: value for name, value in variables.items() if name not in secret}
    note(f"for {place(options.client)}:")
    say(configuration(options.client, Path(sys.argv[0]).resolve(), _folder(options), chosen, variables).rstrip("\n"))
    return 0


def _folder(options: argparse.Namespace) -> Path:
    """The project around the folder that the options name."""
    start = (options.folder or Path.cwd()).resolve()
    folder = project_folder(start)
    if folder is None:
        consequence = "there is no Pulumi.yaml in this folder or above, so no Pulumi project."
        raise UserError(Problem("--folder", str(start), consequence, "name the folder of the project."))
    return folder
