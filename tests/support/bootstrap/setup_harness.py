"""A project on localcloud that `bezel init` sets up: the cloud, the user's folders, and the command."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel.engine.local.place import PLUGINS
from bezel.engine.run.command import pulumi_cli
from bezel_localcloud import clients, control
from bezel_localcloud.core.paths import BILLING_ACCOUNT, PROJECT, Endpoint
from localcloud_support.client import Client
from tests.support.e2e import warm_bezel, warm_localcloud, warm_python
from tests.support.e2e.rehearsal import SECONDS, SPEED, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

BUCKET = f"{PROJECT}-pulumi-state"
BEZEL = Path(sys.executable).parent / "bezel"
OPTIONS = {
    "--project": PROJECT,
    "--region": "us-east4",
    "--repository": "acme/llm",
    "--repository-id": "4711",
    "--billing-account": BILLING_ACCOUNT.removeprefix("billingAccounts/"),
    "--alert-email": "llm@acme.example",
}


@dataclass
class SetupHarness:
    """One localcloud, and one user of it."""

    folder: Path
    endpoint: Endpoint
    cloud: Client
    environment: dict[str, str]

    @classmethod
    def new(cls, folder: Path) -> SetupHarness:
        """Start a localcloud."""
        directory = folder / "cloud"
        warm_python.environment(folder / ".venv")
        endpoint = warm_localcloud.start(directory, "--speed", SPEED, "--emulator")
        environment = {
            "COLUMNS": "1000",  # a screen that breaks no sentence
            **clients.environment(endpoint),
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "home"),
            "PATH": f"{Path(sys.executable).parent}:{PLUGINS}:/usr/local/bin:/usr/bin:/bin",
            "BEZEL_PYTHON": sys.executable,
            "PULUMI_HOME": str(folder / "pulumi"),
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
        }
        return cls(folder, endpoint, Client(endpoint), environment)

    def stop(self) -> None:
        """Stop the cloud."""
        control.stop(self.endpoint.directory)

    @property
    def home(self) -> Path:
        """The folder of the set-up."""
        return self.folder / "home" / "bezel" / "init" / PROJECT

    def init(self, *more: str) -> Run:
        """Run `bezel init --yes`."""
        return self.bezel("init", "--yes", *arguments(), *more)

    def destroy(self) -> Run:
        """Run `bezel init --destroy`."""
        return self.bezel("init", "--destroy", "--yes", "--project", PROJECT)

    def pulumi(self, *command_line: str) -> Run:
        """Run `pulumi` on the state in the bucket, as a user does by hand."""
        environment = self.environment | warm_python.variables(self.folder)
        environment |= {
            "PULUMI_BACKEND_URL": f"gs://{BUCKET}",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.home / "passphrase"),
            "STORAGE_EMULATOR_HOST": self.endpoint.emulator.removeprefix("http://"),
        }
        ended = subprocess.run(
            [pulumi_cli(), *command_line, "--stack", PROJECT],
            cwd=self.home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Run(ended.returncode, ended.stdout + ended.stderr)

    def bezel(self, *command_line: str) -> Run:
        """Run `bezel`."""
        with tempfile.NamedTemporaryFile("r", prefix="said-") as output:
            environment = self.environment | warm_python.variables(self.folder)
            # The program that it makes runs in its own environment.
            prefix = str(warm_python.interpreter(self.folder).parent.parent)
            output_file = Path(output.name)
            code = warm_bezel.run(command_line, self.folder, environment, output_file, SECONDS, prefix=prefix)
            return Run(code, output.read())

    def start(self, *command_line: str) -> subprocess.Popen[str]:
        """Start `bezel`, without waiting for its end."""
        return subprocess.Popen(
            [BEZEL, *command_line],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kill_when(self, text: str, *command_line: str) -> None:
        """Start `bezel`, and kill it and the engine that it started once a line has these words."""
        process = self.start(*command_line)
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if text in line:
                break
        else:
            raise AssertionError(f"never printed {text!r}:\n{''.join(lines)}")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        engines = [int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "pulumi"]
        # Stopped first: an engine that sees the command die may end by itself.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in (process.pid, *engines):
                os.kill(pid, number)
        process.communicate(timeout=SECONDS)

    def put(self, name: str, content: str = "{}") -> None:
        """Write an object of the state bucket."""
        query = {"uploadType": "media", "name": name}
        assert self.cloud.http.post(f"/upload/storage/v1/b/{BUCKET}/o", params=query, content=content).is_success

    def remove(self, name: str) -> None:
        """Delete an object of the state bucket."""
        path = f"/storage/v1/b/{BUCKET}/o/{name.replace('/', '%2F')}"
        assert self.cloud.http.delete(path).is_success

    def objects(self) -> list[str]:
        """Names of the objects in the state bucket; empty without a bucket."""
        answer = self.cloud.http.get(f"/storage/v1/b/{BUCKET}/o").json()
        return [item["name"] for item in answer.get("items", [])]

    def exists(self) -> dict[str, Any]:
        """Everything that exists in the cloud, by kind."""
        return control.inventory(self.endpoint)


def arguments() -> Sequence[str]:
    """The options of `bezel init`."""
    return [word for pair in OPTIONS.items() for word in pair]


def forget(folder: Path) -> None:
    """Lose everything that this machine knows of a set-up."""
    shutil.rmtree(folder)
    assert not os.path.lexists(folder)
