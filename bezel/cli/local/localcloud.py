"""`bezel local serve|start|...|fault|region`: the commands of `localcloud`, for the project around if any.

Owns the variables that lead an engine to localcloud. Leaves out the words of the program (`bezel.cli.local.program`),
the commands (`bezel_localcloud.command`) and stacks (`bezel.cli.local.stacks`).
"""

import argparse
import os
import sys
from pathlib import Path

from bezel.cli.local.program import BezelLocal, serves_untrained_model
from bezel.engine.project.folder import project_folder
from bezel_base.errors import UserError
from bezel_localcloud import clients, control
from bezel_localcloud.command.cloud import LocalCloud
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
        """The variables that Google's clients and an engine read; what an engine needs is made where it is missing.

        In a project `pulumi` is a command that changes no file of it.
        """
        # Late: no other command here needs them.
        from bezel.engine.local import shell_pulumi
        from bezel.engine.local.place import FOREIGN, EnginePlace

        cloud, for_programs = LocalCloud.of(self, options), control.environment(endpoint)
        if serves_untrained_model(cloud):
            for_programs["BEZEL_RANDOM_WEIGHTS"] = "1"
        place = EnginePlace(cloud.directory, for_programs, options.provider)
        place.prepare()
        folder = project_folder(Path.cwd())
        shell = shell_pulumi.install(folder, place.folder, _project_name(folder)) if folder else {}
        first = [str(Path(shell[shell_pulumi.VARIABLE]).parent)] if shell else []
        path = os.pathsep.join([*first, search_path(folder, os.environ.get("PATH", os.defpath))])
        return Variables(place.environment() | shell | {"PATH": path} | clients.environment(endpoint), FOREIGN)


def _project_name(folder: Path) -> str:
    """The name of a project; of one whose file has none, which the engine refuses, that of its folder."""
    from bezel.engine.project.project import Project  # late: as above

    try:
        return Project(folder).name
    except (UserError, KeyError):
        return folder.name


def search_path(project: Path | None, present: str) -> str:
    """PATH with the commands of this interpreter's environment: first in its own project, else behind the user's own.

    A program elsewhere runs with the user's Python, which another one in front of it would hide.

    Args:
        project: Folder of the project around; None for none.
        present: The user's PATH.
    """
    commands = Path(sys.executable).parent
    entries = [entry for entry in present.split(os.pathsep) if entry != str(commands)]
    is_of_project = project is not None and commands.is_relative_to(project.resolve())
    return os.pathsep.join([str(commands), *entries] if is_of_project else [*entries, str(commands)])
