"""The fixture `localcloud` in runs of pytest of their own, as any project's tests have it."""

import json
import os
import select
import subprocess
from pathlib import Path

import pytest

from localcloud_support.pytest_runs import environment, processes_in, pytest_command, run_pytest, write_tests

pytestmark = pytest.mark.slow  # whole processes
WAIT_MS = 60_000

TESTS = """
import httpx
import pytest


@pytest.fixture
def client(localcloud):
    headers = {"Authorization": f"Bearer {localcloud.token()}"}
    with httpx.Client(base_url=localcloud.address, headers=headers, trust_env=False) as client:
        yield client


def make_bucket(client, localcloud, name):
    return client.post("/storage/v1/b", params={"project": localcloud.project}, json={"name": name}).status_code


def test_clients_have_what_they_read(localcloud, monkeypatch):
    import os

    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "the user's own")
    localcloud.set_variables(monkeypatch)
    assert os.environ["GOOGLE_CLOUD_PROJECT"] == localcloud.project == "my-project"
    assert os.environ["GOOGLE_APPLICATION_CREDENTIALS"] == str(localcloud.credentials)
    assert os.environ["API_ENDPOINT_OVERRIDE"] == localcloud.address
    assert "GOOGLE_OAUTH_ACCESS_TOKEN" not in os.environ
    assert localcloud.endpoints["secretmanager.googleapis.com"] == f"{localcloud.address}/secretmanager"


def test_a_client_recovers_from_a_fault(client, localcloud):
    assert make_bucket(client, localcloud, "one-bucket") == 200
    localcloud.faults.add("server-errors", status=503, path="/storage/*", count=1)
    assert [fault["kind"] for fault in localcloud.faults.active()] == ["server-errors"]
    answers = [client.get("/storage/v1/b/one-bucket").status_code for _ in range(2)]
    assert answers == [503, 200]
    localcloud.faults.add("rate-limited")
    assert localcloud.faults.clear() == ["rate-limited"]


def test_a_reset_keeps_clients_and_settings_and_nothing_else(client, localcloud):
    make_bucket(client, localcloud, "two-bucket")
    localcloud.faults.add("slow-start")
    localcloud.reset()
    assert localcloud.faults.active() == []
    assert client.get("/storage/v1/b/two-bucket").status_code == 404
    assert client.get("/storage/v1/b/seeded-bucket/o/greeting.txt?alt=media").text == "hello"
    assert client.get(f"/secretmanager/v1/projects/{localcloud.project}/secrets").status_code == 200
    assert make_bucket(client, localcloud, "two-bucket") == 200


def test_an_unknown_fault_is_told(localcloud):
    with pytest.raises(Exception, match="is not a kind of fault"):
        localcloud.faults.add("slow-strat")
"""
WAITING = """
def test_waits(localcloud):
    import json, os, sys
    print(json.dumps({"directory": str(localcloud.directory)}), flush=True)
    sys.stdin.read()
"""
ALONE = """
def test_alone():
    import sys
    assert "bezel_localcloud.pytest_plugin" in sys.modules
    assert "bezel_localcloud.control" not in sys.modules
"""
WORKERS = """
def test_notes_its_cloud(localcloud, worker_id):
    import pathlib
    pathlib.Path(__file__).with_name(f"{worker_id}.txt").write_text(localcloud.address)
"""


def test_the_fixture_serves_resets_and_ends(tmp_path: Path) -> None:
    (tmp_path / "buckets" / "seeded-bucket").mkdir(parents=True)
    (tmp_path / "buckets" / "seeded-bucket" / "greeting.txt").write_text("hello")
    options = {"enable": "secretmanager", "seed": "buckets", "project": "my-project"}
    write_tests(tmp_path, TESTS, "".join(f"localcloud_{name} = {value}\n" for name, value in options.items()))
    ran = run_pytest(tmp_path, "-p", "no:xdist")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 passed" in ran.stdout
    assert processes_in(tmp_path) == []


def test_without_the_fixture_nothing_starts(tmp_path: Path) -> None:
    write_tests(tmp_path, ALONE)
    ran = run_pytest(tmp_path, "-p", "no:xdist")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not [*(tmp_path / "temporary").glob("localcloud*")]


def test_a_killed_pytest_leaves_no_process(tmp_path: Path) -> None:
    write_tests(tmp_path, WAITING)
    with subprocess.Popen(
        pytest_command(tmp_path, "-s", "-p", "no:xdist"),
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        line = next((line for line in running.stdout if line.startswith("{")), "")
        directory = Path(json.loads(line)["directory"])
        daemon = json.loads((directory / "endpoint.json").read_text())["pid"]
        waiting = select.poll()
        descriptor = os.pidfd_open(daemon)
        waiting.register(descriptor, select.POLLIN)
        assert not waiting.poll(0)
        running.kill()
    assert waiting.poll(WAIT_MS)
    os.close(descriptor)
    assert not (directory / "endpoint.json").exists()
    assert processes_in(tmp_path) == []


def test_each_worker_has_a_cloud_of_its_own(tmp_path: Path) -> None:
    write_tests(tmp_path, WORKERS)
    ran = run_pytest(tmp_path, "--tx", "2*popen", "--dist", "each")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    addresses = [file.read_text() for file in sorted(tmp_path.glob("gw*.txt"))]
    assert len(addresses) == len(set(addresses)) == 2
    assert processes_in(tmp_path) == []


def test_wrong_settings_are_one_error_before_any_test(tmp_path: Path) -> None:
    ini = "localcloud_enable = rnu\nlocalcloud_speed = fast\nlocalcloud_server = vlm\nlocalcloud_seed = none\n"
    write_tests(tmp_path, TESTS, ini)
    ran = run_pytest(tmp_path)
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "localcloud cannot be started for the tests: 4 problems." in ran.stderr
    for problem in ("localcloud_enable = rnu", "localcloud_speed = fast", "localcloud_server = vlm", "/none\n"):
        assert problem in ran.stderr
    assert "Traceback" not in ran.stderr + ran.stdout
    assert "passed" not in ran.stdout


def test_a_cloud_that_does_not_start_fails_tests_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "buckets" / "No_Bucket!").mkdir(parents=True)
    write_tests(tmp_path, "def test_one(localcloud): pass\n", "localcloud_seed = buckets\n")
    ran = run_pytest(tmp_path, "-p", "no:xdist")
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED
    assert "cannot be copied to gs://No_Bucket!" in ran.stdout
    assert "Traceback" not in ran.stdout
    assert processes_in(tmp_path) == []
