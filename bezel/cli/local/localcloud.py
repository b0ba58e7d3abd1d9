"""`bezel local serve|start|stop|status|env|token|fault`: the commands of `localcloud`, for the project around if any.

Owns the variables of the project's engine. Leaves out the words of the program (`bezel.cli.local.program`), the
commands (`bezel_localcloud.command`) and stacks (`bezel.cli.local.stacks`).
"""

import argparse
import os
from pathlib import Path

from bezel.cli.local.program import BezelLocal
from bezel.engine.project.folder import project_folder
from bezel_localcloud import clients
from bezel_localcloud.command.main import run_command
from bezel_localcloud.command.program import Variables
from bezel_localcloud.core.paths import Endpoint


def run(options: argparse.Namespace) -> int:
    """Run the command that the options name; return its exit code.

    Raises:
        UserError: It failed.
    """
    return run_command(BezelLocalWithEngine(), options)


class BezelLocalWithEngine(BezelLocal):
    """`bezel local`, whose variables point an engine at localcloud too."""

    def variables(self, endpoint: Endpoint, options: argparse.Namespace) -> Variables:
        """The variables that Google's clients read, and in a project those of the engine."""
        for_clients = clients.environment(endpoint)
        if not project_folder(Path.cwd()):
            return Variables(for_clients, clients.FOREIGN)
        # Late: they take half a second to import, and only a project needs them.
        from bezel.cli.local.stacks import Local
        from bezel.engine.local import engine as local_engine
        from bezel.engine.local import shell_pulumi
        from bezel.engine.project.project import find_project

        engine = Local.of(find_project(Path.cwd()), options).engine(endpoint)
        shell = shell_pulumi.install(engine.project.folder, engine.folder)
        path = os.pathsep.join([str(Path(shell[shell_pulumi.VARIABLE]).parent), engine.environment()["PATH"]])
        return Variables(engine.environment() | shell | {"PATH": path} | for_clients, local_engine.FOREIGN)
