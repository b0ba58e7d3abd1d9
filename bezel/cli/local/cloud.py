"""`bezel local start|stop|status|token`: the embedded cloud alone, with or without a Pulumi project around.

Owns the folder of its data, its start and stop in the background, and how a command reaches it. Leaves out its run in
the foreground (`bezel.cli.local.serve`) and stacks (`bezel.cli.local.stacks`).
"""

import argparse
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bezel.engine.project.folder import project_folder
from bezel.state_folder import state_folder
from bezel_base.console import say
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_localcloud import clients, control
from bezel_localcloud.core.files.locks import Use, using
from bezel_localcloud.core.paths import Endpoint, Paths

DIRECTORY = ".localcloud"  # in a project
NAME = "localcloud"  # in the user's state folder


def run(options: argparse.Namespace) -> int:
    """Run one of the subcommands; return the exit code."""
    cloud = LocalCloud.of(options)
    match options.action:
        case "stop":
            control.stop(cloud.directory)
        case "start":
            check_folder(cloud.directory)
            with using(cloud.directory) as use:
                say(summary(cloud.start(use)))
        case "status":
            endpoint = cloud.running()
            sys.stdout.write(f"{summary(endpoint)}\n\n{clients.instructions(endpoint)}")
        case "token":
            token = cloud.identity_token(options.url) if options.url else control.access_token(cloud.running())
            sys.stdout.write(f"{token}\n")
    return 0


@dataclass(frozen=True)
class LocalCloud:
    """The embedded cloud of one folder.

    Attributes:
        directory: Folder of its data.
        server: Server behind each service.
        model: Folder of the model that a real server serves.
        speed: Factor by which waits of the platform are shortened.
        port: Port of the APIs; 0 for the folder's own.
    """

    directory: Path
    server: Literal["sim", "vllm"] = "sim"
    model: Path | None = None
    speed: float = 60.0
    port: int = 0

    @classmethod
    def of(cls, options: argparse.Namespace) -> "LocalCloud":
        """The embedded cloud that the options describe."""
        directory = options.dir or default_directory()
        return cls(directory, options.server, options.model, options.speed, getattr(options, "port", 0))

    def running(self) -> Endpoint:
        """The running localcloud.

        Raises:
            UserError: It is not running.
        """
        endpoint = control.status(self.directory)
        if endpoint is None:
            consequence = "localcloud is not running there, so this command has nothing to act on."
            repair = "start it: `bezel local start` (in a clone `.venv/bin/bezel local start`, or `make up`)."
            raise UserError(Problem("--dir", str(self.directory), consequence, repair))
        return endpoint

    def start(self, use: Use) -> Endpoint:
        """Start the localcloud that this command needs, in place of another one unless that is in use.

        Raises:
            UserError: Another command uses a different one, or localcloud does not start.
        """
        self.check_server()
        present = control.status(self.directory)
        if present and present.kind != control.kind(self.server, self.speed) and not use.take_alone():
            consequence = (
                f"localcloud at {present.base} is used by another command and would have to be stopped: it has server "
                f"{present.server} and speed {present.speed:g}, or older code; this command needs server {self.server} "
                f"and speed {self.speed:g}."
            )
            repair = "wait until the other command has ended, or choose another folder."
            raise UserError(Problem("--dir", str(self.directory), consequence, repair))
        try:
            endpoint = control.start(self.directory, server=self.server, speed=self.speed, port=self.port)
        finally:
            use.share()
        if self.port not in {0, endpoint.port}:
            consequence = f"localcloud already runs in {self.directory} at {endpoint.base}."
            repair = "leave the option out, or run `bezel local stop` with the same folder first."
            raise UserError(Problem("--port", self.port, consequence, repair))
        return endpoint

    def check_server(self) -> None:
        """Check that the requested server can run, and pass its model on.

        Raises:
            UserError: There is no model, or no vLLM; or a model is named that the simulated server would not serve.
        """
        if self.server == "vllm":
            os.environ["LOCALCLOUD_VLLM_MODEL"] = str(_checked_model(self.model))
        elif self.model is not None:
            consequence = "the simulated server answers for the stack's model and reads no folder."
            repair = "add SERVER=vllm (--server vllm), or leave the option out."
            raise UserError(Problem("--model", str(self.model), consequence, repair))

    def identity_token(self, url: str) -> str:
        """An identity token of localcloud's deployer.

        Raises:
            RestError: No token can be obtained.
        """
        from bezel.rest import Credentials  # late: no other command here needs it

        endpoint = self.running()
        for name in clients.FOREIGN:
            os.environ.pop(name, None)
        os.environ.update(control.environment(endpoint))
        return Credentials().identity_token(url)


def default_directory() -> Path:
    """Folder of the data without --dir: `.localcloud` of the project around, else the user's state folder."""
    folder = project_folder(Path.cwd())
    return folder / DIRECTORY if folder else state_folder(NAME)


def check_folder(directory: Path) -> None:
    """Check that a folder is localcloud's, or a new one: the permissions of everything in it are taken from others.

    Raises:
        UserError: It holds something else, as the user's home does.
    """
    layout = Paths(directory)
    if directory.is_dir() and not layout.use_lock.exists() and any(directory.iterdir()):
        consequence = "the folder is not empty and not localcloud's, so nothing was started."
        raise UserError(Problem("--dir", str(directory), consequence, "choose a new or an empty folder."))


def summary(endpoint: Endpoint) -> str:
    """What runs at which address, in one line."""
    return f"localcloud at {endpoint.base}, behind each service {behind(endpoint)}"


def behind(endpoint: Endpoint) -> str:
    """The server behind each service."""
    return "a simulated vLLM" if endpoint.server == "sim" else "the real vLLM of this machine"


def _checked_model(model: Path | None) -> Path:
    """The folder that a real vLLM is to serve.

    Raises:
        UserError: There is no such folder, or no vLLM to serve it.
    """
    problems = []
    if model is None:
        repair = "add MODEL=DIR (--model DIR), the folder of a small local model."
        problems.append(Problem("--model", NOT_SET, "a real vLLM has no model to serve.", repair))
    elif not (model / "config.json").is_file():
        repair = "choose the folder of a model."
        problems.append(Problem("--model", str(model), "the folder contains no config.json, so no model.", repair))
    if shutil.which("vllm") is None:
        repair = "activate the environment that vLLM is installed in."
        problems.append(Problem("--server", "vllm", "there is no `vllm` on PATH.", repair))
    if model is None or problems:
        raise UserError(*problems, title="A real vLLM cannot be started")
    return model.absolute()
