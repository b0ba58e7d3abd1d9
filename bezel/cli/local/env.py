"""`bezel local env`: the variables that point clients, and in a project the engine, to a running localcloud."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from bezel.cli.local.cloud import LocalCloud
from bezel.engine.project.folder import project_folder
from bezel_localcloud import clients


def run(options: argparse.Namespace) -> int:
    """Print the variables; return the exit code."""
    endpoint = LocalCloud.of(options).running()
    variables = clients.environment(endpoint)
    foreign: tuple[str, ...] = clients.FOREIGN
    if project_folder(Path.cwd()):
        # Late: they take half a second to import, and outside of a project no one needs them.
        from bezel.cli.local.stacks import Local
        from bezel.engine.local import engine as local_engine
        from bezel.engine.local import shell_pulumi
        from bezel.engine.project.project import find_project

        engine = Local.of(find_project(Path.cwd()), options).engine(endpoint)
        own = shell_pulumi.install(engine.project.folder, engine.folder)
        path = os.pathsep.join([str(Path(own[shell_pulumi.VARIABLE]).parent), engine.environment()["PATH"]])
        variables = engine.environment() | own | {"PATH": path} | variables
        foreign = local_engine.FOREIGN
    sys.stdout.write(_printed(variables, [name for name in foreign if name not in variables], options.format))
    return 0


def _printed(variables: Mapping[str, str], foreign: Iterable[str], form: str) -> str:
    """The variables as lines for a shell, as lines of a file (`NAME=VALUE`), or as JSON."""
    if form == "json":
        return json.dumps(variables, indent=2) + "\n"
    if form == "file":
        return "".join(f"{name}={value}\n" for name, value in variables.items())
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    return f"unset {' '.join(foreign)}\n{exports}"
