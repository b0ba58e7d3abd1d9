"""Programs that have these commands: `localcloud`, and `bezel local`, which knows the project around.

Owns what differs between them: where the data lie by default, the variables of `env`, and the words of a repair.
"""

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bezel_base.state_folder import state_folder
from bezel_localcloud import PROGRAM, clients
from bezel_localcloud.core.paths import PROJECT_VARIABLE, Endpoint, Paths

FOLDER = ".localcloud"
"""Name of the folder of the data beside the user's own files."""
_NAME = "localcloud"  # in the user's state folder


@dataclass(frozen=True)
class Variables:
    """What `env` prints.

    Attributes:
        values: The variables by their names.
        foreign: Names of variables of the user that clients would prefer to them.
    """

    values: Mapping[str, str]
    foreign: tuple[str, ...]


class Program:
    """The command `localcloud`, which knows no project; another program that has the commands derives from it.

    Attributes:
        typed: The program as a user types it.
        start_repair: How a user starts localcloud, as a repair.
        arguments: The words of the command line behind the program.
    """

    typed: str = PROGRAM
    start_repair: str = "start it: `localcloud start`, or `localcloud serve` in the foreground."

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        self.arguments = arguments

    def serve_in_other_process(self, project: str) -> int:
        """Run the same command line again in place of this process, as one that serves a project of this id.

        Modules hold the id in names of resources from their import on.
        """
        command = [sys.executable, "-P", "-m", "bezel_localcloud.command.main", *self.arguments]
        signal.setitimer(signal.ITIMER_REAL, 0)  # of bezel_base.ending_signals: it would end the program that comes
        os.execve(sys.executable, command, {**os.environ, PROJECT_VARIABLE: project})  # noqa: S606 - no shell

    def default_directory(self) -> Path:
        """The folder `.localcloud` of the working directory or of the nearest one above, else the user's state folder.

        Only a folder that localcloud has made counts, and none of another user.
        """
        here = Path.cwd()
        for parent in (here, *here.parents):
            folder = parent / FOLDER
            if _is_own(folder):
                return folder
        return self.state_directory()

    @staticmethod
    def state_directory() -> Path:
        """The folder of the user who has none of their own for the data."""
        return state_folder(_NAME)

    def key(self, option: str) -> str:
        """The name of an option in an error."""
        return option

    def option(self, name: str, value: str) -> str:
        """An option with its value, as a user types it."""
        return f"{name} {value}"

    def variables(self, endpoint: Endpoint, options: argparse.Namespace) -> Variables:
        """The variables that Google's clients read."""
        del options
        return Variables(clients.environment(endpoint), clients.FOREIGN)


def _is_own(folder: Path) -> bool:
    """Whether localcloud has made a folder for this user."""
    try:
        return Paths(folder).use_lock.stat().st_uid == os.geteuid()
    except OSError:
        return False
