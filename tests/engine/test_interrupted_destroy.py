"""A destroy that ends with 0 after an interrupt: it is done only if the state has no resources."""

import json
import os
import threading
from pathlib import Path

import pytest

from bezel.engine.project.project import Project
from bezel.engine.run.engine import Engine, EngineRun
from bezel_base.ending_signals import INTERRUPTED

# Stands for `pulumi`: says that it runs, and ends with 0 once it is interrupted, as the engine does amid deletes.
CLI = "#!/bin/sh\ntrap 'exit 0' INT\necho > started\nread -r _ < ended\n"
STACK = {"urn": "urn:pulumi:dev::demo::pulumi:pulumi:Stack::demo-dev", "type": "pulumi:pulumi:Stack"}
CUT = "the destroy was interrupted, and dev still has resources: run it again"


def interrupted_run(folder: Path, operation: str, resources: list[dict[str, str]]) -> EngineRun:
    """A run that is cancelled while the engine works, which leaves these resources in the state."""
    (folder / "Pulumi.yaml").write_text("name: demo\nruntime: yaml\n")
    state = folder / ".pulumi" / "stacks" / "demo" / "dev.json"
    state.parent.mkdir(parents=True)
    checkpoint = {"stack": "organization/demo/dev", "latest": {"manifest": {}, "resources": resources}}
    state.write_text(json.dumps({"version": 3, "checkpoint": checkpoint}))
    (folder / "pulumi").write_text(CLI)
    (folder / "pulumi").chmod(0o755)
    for name in ("started", "ended"):
        os.mkfifo(folder / name)
    cancelled = threading.Event()
    watcher = threading.Thread(target=lambda: ((folder / "started").read_text(), cancelled.set()), daemon=True)
    watcher.start()
    environment = {"PATH": os.defpath, "PULUMI_BACKEND_URL": f"file://{folder}"}
    engine = Engine(Project(folder), "dev", environment, folder / "Pulumi.dev.yaml", show=str, cancelled=cancelled)
    run = engine.run(operation)  # type: ignore[arg-type]
    watcher.join(60)
    return run


@pytest.fixture(autouse=True)
def _cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))


@pytest.mark.parametrize(
    ("operation", "resources", "code", "errors"),
    [("destroy", [STACK], INTERRUPTED, [CUT]), ("destroy", [], 0, []), ("up", [STACK], 0, [])],
)
def test_an_interrupted_destroy_has_failed_while_resources_are_left(
    tmp_path: Path, operation: str, resources: list[dict[str, str]], code: int, errors: list[str]
) -> None:
    run = interrupted_run(tmp_path, operation, resources)
    assert (run.end.code, run.end.interrupted, run.errors) == (code, True, errors)
