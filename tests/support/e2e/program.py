"""A Pulumi program of somebody else, run by the engine on the cloud of a rehearsal."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bezel_localcloud import seed
from bezel_localcloud.core.paths import Endpoint
from bezel_simulated_vllm.synthetic_weights import model_files
from tests.support.e2e import warm_bezel, warm_python
from tests.support.e2e.rehearsal import ROOT, Run

if TYPE_CHECKING:
    from tests.support.e2e.rehearsal import Rehearsal

SECONDS = 300
RUN_ENGINE = Path(__file__).with_name("run_engine.py")


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
        arguments = [str(RUN_ENGINE), str(self.cloud), command, "--non-interactive", *options]
        variables = os.environ | {"BEZEL_SIMULATED": "1", warm_python.VARIABLE: warm_python.serving()}
        with tempfile.NamedTemporaryFile("r", prefix="said-") as output_file:
            code = warm_bezel.run(
                arguments, self.folder, variables, Path(output_file.name), SECONDS, python=self.python
            )
            return Run(code, output_file.read())
