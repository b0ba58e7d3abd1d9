"""The words and the folder of `bezel local`, as the commands of `localcloud` take them.

Leaves out the variables of a project's engine (`bezel.cli.local.localcloud`), which need the stacks.
"""

from pathlib import Path

from bezel.engine.project.folder import project_folder
from bezel_base.errors import Problem, UserError
from bezel_localcloud.command.cloud import LocalCloud
from bezel_localcloud.command.program import FOLDER, Program


class BezelLocal(Program):
    """The command `bezel local`."""

    typed = "bezel local"
    start_repair = "start it: `bezel local start`, or `make up`, which deploys too."

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


def serves_untrained_model(cloud: LocalCloud) -> bool:
    """Whether a real server serves a test model whose weights were never trained."""
    from bezel_localcloud.services.cloud_run.runtime.untrained import is_untrained  # late: most runs are simulated

    return cloud.server == "vllm" and cloud.model is not None and is_untrained(cloud.model)
