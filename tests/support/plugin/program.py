"""A Pulumi program in another language than Python that uses the package, on a localcloud of its own.

The engine, the language hosts and the package's process are the real ones. Nothing but the program is in its folder.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bezel.engine.local.engine import LocalEngine
from bezel.engine.project.project import Project
from bezel_localcloud import control, seed
from bezel_localcloud.core.paths import Endpoint
from bezel_simulated_vllm.synthetic_weights import model_files
from tests.support.e2e import warm_localcloud, warm_python
from tests.support.needed_programs import need_program

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "plugin"
DOCUMENT = ROOT / "docs" / "package.md"
PULUMI = Path(sys.executable).parent / "pulumi"
SECONDS = 240
SPEED = 2000
STACK = "dev"
MODEL = "google/gemma-4-E2B-it"


def go_program(name: str) -> Path:
    """The folder of a program built from Go modules; skips where there is no Go, but not in CI."""
    need_program("go", f"builds {name}")
    command = [sys.executable, str(ROOT / "tools" / "toolchain" / "go_programs.py"), name]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=900, check=True)
    return Path(ended.stdout.strip())


def copy_plugin(folder: Path, environment: Path = Path(sys.prefix)) -> Path:
    """The package's folder, with this environment in place of the one that the engine would make for it."""
    folder.mkdir()
    shutil.copy(PLUGIN / "__main__.py", folder)
    text = (PLUGIN / "PulumiPlugin.yaml").read_text()
    option = "virtualenv: .venv"
    assert text.count(option) == 1
    (folder / "PulumiPlugin.yaml").write_text(text.replace(option, f"virtualenv: {environment}"))
    return folder


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    text: str


@dataclass(frozen=True)
class Program:
    """The program's folder, its cloud, and folders that come first on PATH: those of language hosts."""

    folder: Path
    cloud: Path
    path: tuple[Path, ...]

    @classmethod
    def make(cls, folder: Path, files: Mapping[str, str], *path: Path) -> "Program":
        """Write the program, in which `@plugin@` is the package's folder, and start its cloud with a model."""
        program, cloud = folder / "program", folder / "cloud"
        warm_python.environment(folder / ".venv")
        copy_plugin(folder / "plugin", folder / ".venv")
        made = cls(program, cloud, path)
        for name, text in files.items():
            made.write(name, text)
        (program / f"Pulumi.{STACK}.yaml").write_text("config: {}\n")
        endpoint = warm_localcloud.start(cloud, "--speed", f"{SPEED}")
        seed.seed(endpoint, "shop-models", "gemma", model_files(MODEL))
        made._engine(endpoint).prepare(STACK)
        return made

    def stop(self) -> None:
        """Stop the cloud."""
        control.stop(self.cloud)

    def write(self, name: str, text: str) -> None:
        """Write a file of the program, in which `@plugin@` is the package's folder."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("@plugin@", str(self.folder.parent / "plugin")))

    def change(self, name: str, old: str, new: str) -> None:
        """Replace a text that a file of the program has once."""
        text = (self.folder / name).read_text()
        assert text.count(old) == 1, text
        (self.folder / name).write_text(text.replace(old, new))

    def run(self, command: str, *options: str) -> Ended:
        """`pulumi COMMAND` on the program's stack."""
        stack_file = self._engine(Endpoint.read(self.cloud)).stack_copy(STACK)
        return self.pulumi(command, "--stack", STACK, "--config-file", str(stack_file), *options)

    def pulumi(self, *arguments: str) -> Ended:
        """`pulumi ARGUMENTS` in the program's folder."""
        variables = os.environ | self._engine(Endpoint.read(self.cloud)).environment()
        variables |= warm_python.variables(self.folder.parent)
        variables["PATH"] = os.pathsep.join([*map(str, self.path), variables["PATH"]])
        command = [str(PULUMI), *arguments, "--non-interactive"]
        ended = subprocess.run(
            command,
            cwd=self.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout)

    def inventory(self) -> dict[str, Any]:
        """What the cloud has."""
        return dict(control.inventory(Endpoint.read(self.cloud)))

    def state(self) -> list[dict[str, Any]]:
        """The resources in the stack's state."""
        (file,) = (self.cloud / "state" / ".pulumi" / "stacks").glob(f"*/{STACK}.json")
        resources: list[dict[str, Any]] = json.loads(file.read_text())["checkpoint"]["latest"].get("resources", [])
        return resources

    def _engine(self, endpoint: Endpoint) -> LocalEngine:
        return LocalEngine(Project(self.folder), self.cloud, control.environment(endpoint))
