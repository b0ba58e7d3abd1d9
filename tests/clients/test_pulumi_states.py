"""Pulumi's own `gs://` backend, unmodified: states, history, locks and backups in a bucket of localcloud.

With STORAGE_EMULATOR_HOST it sends no token, so the bucket must be open to all users of this machine.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bezel.engine.run.command import pulumi_cli

pytestmark = [pytest.mark.slow, pytest.mark.clients]
OBJECTS = "/storage/v1/b/states/o"
PROGRAM = 'import pulumi\n\npulumi.export("answer", pulumi.Config().require_int("number") * 2)\n'


@pytest.fixture
def pulumi(cloud, endpoint, tmp_path):
    """A function that runs the CLI on a small program, with its states in the bucket `states`."""
    answer = cloud.post("/storage/v1/b", {"name": "states"}, project="bezel-local")
    assert answer.status_code == 200
    cloud.grant_bucket("states", "roles/storage.objectAdmin", "allUsers")
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "__main__.py").write_text(PROGRAM)
    runtime = {"name": "python", "options": {"virtualenv": str(Path(sys.executable).parents[1])}}
    (folder / "Pulumi.yaml").write_text(json.dumps({"name": "small", "runtime": runtime}))
    variables = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_BACKEND_URL": "gs://states",
        "PULUMI_CONFIG_PASSPHRASE": "x",
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "GOOGLE_APPLICATION_CREDENTIALS": str(endpoint.credentials),
        "STORAGE_EMULATOR_HOST": endpoint.base.removeprefix("http://"),
    }

    def run(*arguments, fails=""):
        command = [pulumi_cli(), *arguments, "--non-interactive"]
        ended = subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, text=True, timeout=60, check=False
        )
        assert (ended.returncode == 0) == (not fails), ended.stdout + ended.stderr
        assert fails in ended.stdout + ended.stderr
        return ended.stdout

    return run


def object_names(cloud, prefix):
    return [item["name"] for item in cloud.get(OBJECTS, prefix=f".pulumi/{prefix}").json().get("items", [])]


def test_a_stack_lives_in_a_bucket_and_a_lock_of_another_run_keeps_it(pulumi, cloud):
    pulumi("stack", "init", "dev")
    pulumi("up", "--yes", "--skip-preview", "--config", "number=21")
    assert object_names(cloud, "locks/") == []
    assert json.loads(pulumi("stack", "history", "--json"))[0]["result"] == "succeeded"

    lock = ".pulumi/locks/organization/small/dev/0b4b1f0e-0000-0000-0000-000000000000.json"
    body = {"pid": 1, "username": "x", "hostname": "elsewhere", "timestamp": "2026-01-01T00:00:00Z"}
    cloud.http.post(f"/upload{OBJECTS}", params={"uploadType": "media", "name": lock}, json=body)
    pulumi("up", "--yes", "--skip-preview", fails="the stack is currently locked by 1 lock(s)")
    pulumi("cancel", "--yes")
    assert object_names(cloud, "locks/") == []
    outputs = json.loads(pulumi("stack", "export"))["deployment"]["resources"][0]["outputs"]
    assert outputs == {"answer": 42}
    pulumi("stack", "rm", "--yes", "--force")
    assert [name for name in object_names(cloud, "stacks/") if name.endswith(".json")] == []
