"""`bezel local serve|start|stop|status|env|token|fault`: the commands of `localcloud`, for the project around if any.

Owns what a project changes: where the data lie, the engine's variables, and the words of a repair. Leaves out the
commands (`bezel_localcloud.command`) and stacks (`bezel.cli.local.stacks`).
"""

import argparse
import os
from pathlib import Path

from bezel.engine.project.folder import project_folder
from bezel_base.errors import Problem, UserError
from bezel_localcloud import clients
from bezel_localcloud.command.main import run_command
from bezel_localcloud.command.program import FOLDER, Program, Variables
from bezel_localcloud.core.paths import Endpoint


def run(options: argparse.Namespace) -> int:
    """Run the command that the options name; return its exit code.

    Raises:
        UserError: It failed.
    """
    return run_command(BezelLocal(), options)


class BezelLocal(Program):
    """The command `bezel local`."""

    typed = "bezel local"
    start_repair = "start it: `bezel local start` (in a clone `.venv/bin/bezel local start`, or `make up`)."

    def default_directory(self) -> Path:
        """The folder `.localcloud` of the project around, else the user's state folder."""
        folder = project_folder(Path.cwd())
        return folder / FOLDER if folder else self.state_directory()

    def serve_in_other_process(self, project: str) -> int:
        """Refuse a folder of another project: the programs of this repository know the usual one."""
        consequence = f"the folder holds the project {project}, which this command does not serve."
        raise UserError(Problem("--dir", None, consequence, "run `localcloud serve` with the same options."))

    def option(self, name: str, value: str) -> str:
        """An option with its value, as make and the command take it."""
        return f"{name.removeprefix('--').upper()}={value} ({name} {value})"

    def variables(self, endpoint: Endpoint, options: argparse.Namespace) -> Variables:
        """The variables that Google's clients read, and in a project those of the engine."""
        own = clients.environment(endpoint)
        if not project_folder(Path.cwd()):
            return Variables(own, clients.FOREIGN)
        # Late: they take half a second to import, and only a project needs them.
        from bezel.cli.local.stacks import Local
        from bezel.engine.local import engine as local_engine
        from bezel.engine.local import shell_pulumi
        from bezel.engine.project.project import find_project

        engine = Local.of(find_project(Path.cwd()), options).engine(endpoint)
        shell = shell_pulumi.install(engine.project.folder, engine.folder)
        path = os.pathsep.join([str(Path(shell[shell_pulumi.VARIABLE]).parent), engine.environment()["PATH"]])
        return Variables(engine.environment() | shell | {"PATH": path} | own, local_engine.FOREIGN)
