"""A Pulumi program of somebody else, run by the engine on the cloud of a rehearsal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_localcloud import seed
from bezel_localcloud.core.paths import Endpoint
from bezel_simulated_vllm.synthetic_weights import model_files
from tests.support.e2e import warm_python
from tests.support.e2e.rehearsal import ROOT, Run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.e2e.rehearsal import Rehearsal

SECONDS = 300
_RUN = """
import sys
from pathlib import Path
from bezel.engine.local.engine import LocalEngine
from bezel.engine.project.project import Project
from bezel_localcloud import control
from bezel_localcloud.core.paths import Endpoint
folder, sys.executable = Path(sys.argv[1]), sys.argv[2]  # by which the engine starts what it starts
engine = LocalEngine(Project(Path.cwd()), folder, control.environment(Endpoint.read(folder)))
engine.prepare("dev")
sys.exit(engine.run(sys.argv[3], "dev", sys.argv[4:]).end.code)
"""


@dataclass(frozen=True)
class Program:
    """The folder of a program, the folder of the cloud that it is run on, and what starts it: a launcher."""

    folder: Path
    cloud: Path
    python: Path

    @classmethod
    def make(cls, folder: Path, rehearsal: Rehearsal, text: str) -> Program:
        """Write a program; the cloud runs already."""
        folder.mkdir()
        plugin = ROOT / "components/bezel_components/dynamic_plugin"
        project = {
            "name": "shop",
            "runtime": {"name": "python", "options": {"virtualenv": str(rehearsal.folder / ".venv")}},
            "plugins": {"providers": [{"name": "pulumi-python", "path": str(plugin)}]},
        }
        (folder / "Pulumi.yaml").write_text(json.dumps(project))
        (folder / "Pulumi.dev.yaml").write_text("config: {}\n")
        made = cls(folder, rehearsal.cloud, warm_python.interpreter(rehearsal.folder))
        made.write(text)
        return made

    def write(self, text: str) -> None:
        """Change the program."""
        (self.folder / "__main__.py").write_text(text)

    def put_model(self, bucket: str, path: str, source: str) -> None:
        """Put the files of a model into a bucket, which is made where it is missing."""
        seed.seed(Endpoint.read(self.cloud), bucket, path, model_files(source))

    def engine(self, command: str, *options: str) -> Run:
        """Run the engine on the program's one stack."""
        arguments = [
            sys.executable,
            "-c",
            _RUN,
            str(self.cloud),
            str(self.python),
            command,
            "--non-interactive",
            *options,
        ]
        variables = os.environ | {"BEZEL_SIMULATED": "1", warm_python.VARIABLE: warm_python.serving()}
        answer = subprocess.run(
            arguments, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        return Run(answer.returncode, answer.stdout + answer.stderr)
