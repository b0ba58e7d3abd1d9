"""`bezel ci lock`: exit codes, the report of --show, and the removal by hand."""

import json
import sys

import pytest

from bezel.cli.main import main
from tests.engine.test_stack_locks import LOCK, NAME, to_json
from tests.support.gitops.fake_bucket import fake_bucket
from tests.support.gitops.fake_forge import fake_forge


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """A project whose states are in a bucket."""
    (tmp_path / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_RUN_ID", "GITHUB_API_URL", "GITHUB_STEP_SUMMARY", "GOOGLE_STORAGE_CUSTOM_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with fake_bucket() as served:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", served.server.url)
        monkeypatch.setenv("PULUMI_BACKEND_URL", "gs://states")
        yield served


def exits(code):
    return ["--", sys.executable, "-S", "-c", f"raise SystemExit({code})"]


@pytest.mark.slow
@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_the_command_s(bucket, code):
    assert main(["ci", "lock", "dev", *exits(code)]) == code
    assert bucket.objects == {}


def test_another_owner_is_exit_5_and_the_command_does_not_run(bucket, capsys, tmp_path):
    bucket.objects[NAME] = (to_json(LOCK), 9)
    touch = ["--", "touch", str(tmp_path / "ran")]
    assert main(["ci", "lock", "dev", "--wait", "0s", *touch]) == 5
    assert "started by ann" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "arguments", [[], ["--show", *exits(0)], ["--show", "--break", "9", *exits(0)], ["--wait", "5", *exits(0)]]
)
def test_a_wrong_command_line_is_exit_2_and_takes_no_lock(bucket, arguments):
    assert main(["ci", "lock", "dev", *arguments]) == 2
    assert bucket.server.calls == []


def test_the_lock_is_shown_and_removed_by_its_generation(bucket, capsys):
    bucket.objects[NAME] = (to_json(LOCK), 9)
    assert main(["ci", "lock", "dev", "--show", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["kind"], report["locked"], report["generation"]) == ("lock", True, "9")
    assert main(["ci", "lock", "dev", "--break", "8"]) == 5
    assert NAME in bucket.objects
    assert main(["ci", "lock", "dev", "--break", "9"]) == 0
    assert bucket.objects == {}


@pytest.mark.slow
def test_the_forge_of_the_run_is_asked_whether_the_owner_has_ended(bucket, monkeypatch, capsys):
    with fake_forge("gitea") as forge:
        for name, value in (forge.environ() | {"GITHUB_RUN_ID": "8", "GITHUB_JOB": "deploy"}).items():
            monkeypatch.setenv(name, value)
        text = to_json(LOCK).decode().replace("https://forge.example", forge.address)
        bucket.objects[NAME] = (text.encode(), 9)
        forge.runs[7] = {"status": "in_progress"}
        assert main(["ci", "lock", "dev", "--wait", "0s", *exits(0)]) == 5
        forge.runs[7] = {"status": "completed"}
        assert main(["ci", "lock", "dev", "--wait", "0s", *exits(0)]) == 0
        assert "took over the lock of dev from run 7" in capsys.readouterr().err


@pytest.mark.usefixtures("bucket")
def test_a_backend_without_preconditions_is_refused(monkeypatch, capsys):
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file:///tmp/states")
    assert main(["ci", "lock", "dev", *exits(0)]) == 1
    assert "PULUMI_BACKEND_URL" in capsys.readouterr().err
