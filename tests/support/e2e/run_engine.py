"""Runs the engine on the stack `dev` of the program in this folder: `run_engine.py CLOUD COMMAND OPTIONS`."""

import sys
from pathlib import Path

from bezel.engine.local.engine import LocalEngine
from bezel.engine.project.project import Project
from bezel_localcloud import control
from bezel_localcloud.core.paths import Endpoint

if __name__ == "__main__":
    cloud = Path(sys.argv[1])
    engine = LocalEngine(Project(Path.cwd()), cloud, control.environment(Endpoint.read(cloud)))
    engine.prepare("dev")
    sys.exit(engine.run(sys.argv[2], "dev", sys.argv[3:]).end.code)
