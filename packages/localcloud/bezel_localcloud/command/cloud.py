"""`start`, `stop`, `status`, `token` and `reset`: localcloud in the background.

Owns the folder of its data, its start and stop, and how a command reaches it. Leaves out its run in the foreground
(`bezel_localcloud.command.serve`).
"""

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bezel_base.console import note, say
from bezel_base.errors import NOT_SET, Problem, UserError, WrongValueError
from bezel_base.terminal.blocks import Line
from bezel_base.terminal.screen import show
from bezel_localcloud import clients, control, control_client
from bezel_localcloud.command.preparation import Preparation
from bezel_localcloud.command.program import Program
from bezel_localcloud.core.files.locks import Use, using
from bezel_localcloud.core.paths import Endpoint, Paths


def start(program: Program, options: argparse.Namespace) -> int:
    """Start localcloud unless it is running, and prepare its project; return the exit code."""
    cloud = LocalCloud.of(program, options)
    preparation = Preparation(options.enable, options.seed)
    check_values(lambda: check_folder(cloud.directory), cloud.check_server, preparation.check)
    with using(cloud.directory) as use:
        before = control.status(cloud.directory)
        endpoint = cloud.start(use)
        try:
            preparation.apply(endpoint)
        except BaseException:  # an interrupt too: what was started for a preparation does not outlive it
            if before is None or before.pid != endpoint.pid:
                control.stop(cloud.directory)
            raise
        say(summary(endpoint))
    return 0


def stop(program: Program, options: argparse.Namespace) -> int:
    """Stop localcloud; return the exit code. One that does not run is no error."""
    control.stop(LocalCloud.of(program, options).directory)
    return 0


def status(program: Program, options: argparse.Namespace) -> int:
    """Print where localcloud is and how clients reach it; return the exit code."""
    endpoint = LocalCloud.of(program, options).running()
    show([Line(summary(endpoint)), Line(), *clients.instructions(endpoint, program.typed)])
    return 0


def token(program: Program, options: argparse.Namespace) -> int:
    """Print an identity token for a service's URL, or an access token; return the exit code."""
    sys.stdout.write(f"{LocalCloud.of(program, options).token(options.url)}\n")
    return 0


def reset(program: Program, options: argparse.Namespace) -> int:
    """Delete everything of the running localcloud's project; return the exit code."""
    endpoint = LocalCloud.of(program, options).running()
    control_client.reset(endpoint)
    say(f"localcloud at {endpoint.base} serves a new project")
    return 0


@dataclass(frozen=True)
class LocalCloud:
    """The embedded cloud of one folder.

    Attributes:
        program: The program that acts on it.
        directory: Folder of its data.
        server: Server behind each service.
        model: Folder of the model that a real server serves.
        speed: Factor by which waits of the platform are shortened.
        port: Port of the APIs; 0 for the folder's own.
        project: Id of the project of a new folder; "" for the usual one.
    """

    program: Program
    directory: Path
    server: Literal["sim", "vllm"] = "sim"
    model: Path | None = None
    speed: float = 60.0
    port: int = 0
    project: str = ""

    @classmethod
    def of(cls, program: Program, options: argparse.Namespace) -> "LocalCloud":
        """The embedded cloud that the options describe; a command has those that it needs."""
        arguments = {name: getattr(options, name, None) for name in ("server", "model", "speed", "port", "project")}
        set_arguments = {name: value for name, value in arguments.items() if value}
        return cls(program, options.dir or program.default_directory(), **set_arguments)

    def running(self) -> Endpoint:
        """The running localcloud.

        Raises:
            UserError: It is not running.
        """
        endpoint = control.status(self.directory)
        if endpoint is None:
            consequence = "localcloud is not running there, so this command has nothing to act on."
            raise UserError(Problem("--dir", str(self.directory), consequence, self.program.start_repair))
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
            endpoint = control.start(
                self.directory,
                server=self.server,
                speed=self.speed,
                port=self.port,
                project=self.project,
                report=note,
            )
        finally:
            use.share()
        if self.port not in {0, endpoint.port}:
            consequence = f"localcloud already runs in {self.directory} at {endpoint.base}."
            repair = f"leave the option out, or run `{self.program.typed} stop` with the same folder first."
            raise UserError(Problem("--port", self.port, consequence, repair))
        return endpoint

    def check_server(self) -> None:
        """Check that the requested server can run, and pass its model on.

        Raises:
            WrongValueError: There is no such model, or one is named that the simulated server would not serve.
            UserError: There is no vLLM.
        """
        if self.server == "vllm":
            os.environ["LOCALCLOUD_VLLM_MODEL"] = str(self._checked_model())
        elif self.model is not None:
            consequence = "the simulated server answers for the stack's model and reads no folder."
            repair = f"add {self.program.option('--server', 'vllm')}, or leave the option out."
            raise WrongValueError(Problem(self.program.key("--model"), str(self.model), consequence, repair))

    def token(self, url: str = "") -> str:
        """An identity token of the deployer for a service's URL; with "" an access token.

        Raises:
            UserError: localcloud does not run, or gives none.
        """
        import httpx  # late: no other command here needs it

        endpoint = self.running()
        try:
            return control.identity_token(endpoint, url) if url else control.access_token(endpoint)
        except httpx.HTTPStatusError as error:
            why = f"the token endpoint responded {error.response.status_code}: {error.response.text}"
        except httpx.HTTPError as error:
            why = f"the token endpoint does not respond ({type(error).__name__})"
        repair = f"clear the fault that `{self.program.typed} fault show` lists, or read {endpoint.directory / 'logs'}."
        raise UserError(Problem(f"localcloud at {endpoint.base}", None, f"{why}, so there is no token.", repair))

    def _checked_model(self) -> Path:
        """The folder that a real vLLM is to serve.

        Raises:
            WrongValueError: There is no such folder.
            UserError: There is no vLLM to serve it.
        """
        problems = []
        if self.model is None:
            repair = f"add {self.program.option('--model', 'DIR')}, the folder of a small local model."
            problems.append(Problem(self.program.key("--model"), NOT_SET, "a real vLLM has no model to serve.", repair))
        elif not (self.model / "config.json").is_file():
            consequence = "the folder contains no config.json, so no model."
            problems.append(
                Problem(self.program.key("--model"), str(self.model), consequence, "choose the folder of a model.")
            )
        error = WrongValueError if problems else UserError  # a machine without vLLM is no wrong value
        if shutil.which("vllm") is None:
            repair = "activate the environment that vLLM is installed in."
            problems.append(Problem(self.program.key("--server"), "vllm", "there is no `vllm` on PATH.", repair))
        if self.model is None or problems:
            raise error(*problems, title="A real vLLM cannot be started")
        return self.model.absolute()


def check_folder(directory: Path) -> None:
    """Check that a folder is localcloud's, or a new one: the permissions of everything in it are taken from others.

    Raises:
        WrongValueError: It holds something else, as the user's home does, or is no folder.
    """
    layout = Paths(directory)
    if any(place.exists() and not place.is_dir() for place in (directory, *directory.parents)):
        consequence = "a part of the path is a file (Not a directory), so nothing was started."
        raise WrongValueError(
            Problem("--dir", str(directory), consequence, "choose another path; a folder is needed there.")
        )
    if directory.is_dir() and not layout.use_lock.exists() and any(directory.iterdir()):
        consequence = "the folder is not empty and not localcloud's, so nothing was started."
        raise WrongValueError(Problem("--dir", str(directory), consequence, "choose a new or an empty folder."))


def check_values(*checks: Callable[[], None]) -> None:
    """Make several checks of what a user has given.

    Raises:
        WrongValueError: Some values are wrong; the text names all of them.
        UserError: This machine lacks something.
    """
    errors: list[UserError] = []
    for check in checks:
        try:
            check()
        except UserError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        kind = WrongValueError if any(isinstance(error, WrongValueError) for error in errors) else UserError
        raise kind(*(problem for error in errors for problem in error.problems))


def summary(endpoint: Endpoint) -> str:
    """What runs at which address, in one line."""
    return f"localcloud at {endpoint.base}, behind each service {behind(endpoint)}"


def behind(endpoint: Endpoint) -> str:
    """The server behind each service."""
    return "a simulated vLLM" if endpoint.server == "sim" else "the real vLLM of this machine"
