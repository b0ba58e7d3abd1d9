"""The `bezel` command as a user types it: what it prints, and its exit code."""

import fcntl
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bezel.cli.main import main
from bezel_localcloud import control, seed
from bezel_localcloud.core.files.locks import using
from tests.support.cli.refused import NETWORK, refused_create
from tests.support.ended import is_readable

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
Run = Callable[..., tuple[int, str, str]]


def bezel(*arguments: str, cwd: Path = ROOT, **variables: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    command = [str(Path(sys.executable).parent / "bezel"), *arguments]
    ran = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False, timeout=60)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what `bezel` does, in this process: a fresh one imports for half a second."""

    def run_command(*arguments: str, cwd: Path = ROOT, **variables: str) -> tuple[int, str, str]:
        monkeypatch.chdir(cwd)
        for name in {*os.environ} - {"HOME", "PATH"}:
            monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        code = main(arguments)
        return code, *capsys.readouterr()

    return run_command


def test_a_plan_needs_no_project_and_says_for_which_it_is() -> None:
    code, out, err = bezel("plan", "l4-qat")
    assert code == 0
    assert "planned for bezel-local" in err
    assert "gs://bezel-local-models" in out


def test_a_plan_for_a_named_project_says_nothing_else(run_here: Run) -> None:
    code, out, err = run_here("plan", "l4-qat", GOOGLE_PROJECT="acme")
    assert (code, err) == (0, "")
    assert "gs://acme-models" in out
    assert "1.0465 USD/h" in out


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("plan", "l4-qta"), 2, "no Pulumi.l4-qta.yaml"),
        (("local", "outputs", "l4-qat"), 1, "localcloud is not running there"),
        (("local", "token", "http://127.0.0.1:1"), 1, "localcloud is not running there"),
        (("local", "up", "l4-qat", "--server", "vllm"), 2, "has no model to serve"),
    ],
)
def test_a_mistake_is_reported_without_a_traceback(
    run_here: Run, tmp_path: Path, arguments: tuple[str, ...], code: int, text: str
) -> None:
    place = ("--dir", str(tmp_path / "cloud")) if arguments[0] == "local" else ()
    ended, out, err = run_here(*arguments, *place)
    assert (ended, out) == (code, "")
    assert text in err
    assert "Traceback" not in err


def test_a_folder_without_a_project_is_reported(run_here: Run, tmp_path: Path) -> None:
    code, _, err = run_here("plan", "l4-qat", cwd=tmp_path)
    assert code == 1
    assert "so no Pulumi project" in err


def test_starting_twice_is_one_cloud_and_stopping_twice_no_error(run_here: Run, tmp_path: Path) -> None:
    place = ("--dir", str(tmp_path / "cloud"), "--speed", "1000")
    try:
        assert bezel("local", "start", *place)[0] == 0
        _, first, _ = run_here("local", "status", *place)
        assert run_here("local", "start", *place)[0] == 0
        assert run_here("local", "status", *place) == (0, first, "")
        with using(tmp_path / "cloud"):
            code, _, err = run_here("local", "start", *place[:2], "--speed", "500")
        assert code == 1
        assert "speed 1000" in err
        assert "is used by another command" in err
        assert "this command needs server sim and speed 500" in err
        assert run_here("local", "status", *place) == (0, first, "")
        assert run_here("local", "start", *place[:2], "--speed", "500")[0] == 0
    finally:
        assert bezel("local", "stop", *place) == (0, "", "")
    assert run_here("local", "stop", *place) == (0, "", "")
    assert run_here("local", "status", *place)[0] == 1


def test_what_exists_already_stops_a_down_until_it_is_somebody_elses(run_here: Run, tmp_path: Path) -> None:
    place = ("--dir", str(tmp_path / "cloud"))
    refused_create(tmp_path / "cloud", "l4-qat")
    try:
        assert run_here("local", "refresh", "l4-qat", *place)[0] == 0
        code, _, err = run_here("local", "down", "l4-qat", *place)
        assert (code, NETWORK in err) == (1, True)
        code, out, err = run_here("local", "recover", "l4-qat", "--forget", *place)
        assert (code, err) == (0, "")
        assert "l4-qat: 1 of the resources that exist already are left alone" in out
        other = keep_stack_of_another_project(tmp_path / "cloud")
        code, out, err = run_here("local", "down", "l4-qat", *place)
        assert (code, err) == (0, "")
        assert "localcloud keeps running: dev of the project chat is deployed on it; it ends with the last " in out
        assert run_here("local", "status", *place)[0] == 0
        other.unlink()
        code, out, err = run_here("local", "down", "l4-qat", *place)
        assert (code, err) == (0, "")
        assert "localcloud has ended" in out
        assert run_here("local", "status", *place)[0] == 1
    finally:
        run_here("local", "stop", *place)


def keep_stack_of_another_project(cloud: Path) -> Path:
    """Write the state of a stack that has a bucket of a running localcloud; return its file."""
    endpoint = control.status(cloud)
    assert endpoint is not None
    seed.seed(endpoint, "shelf", "", {})
    file = cloud / "state" / ".pulumi" / "stacks" / "chat" / "dev.json"
    file.parent.mkdir()
    resources = [{"type": "gcp:storage/bucket:Bucket", "id": "shelf"}]
    file.write_text(json.dumps({"version": 3, "checkpoint": {"latest": {"resources": resources}}}))
    return file


def waiting_for(lock: Path) -> int:
    """The process that waits for a lock, once there is one."""
    inode = lock.stat().st_ino
    for _ in range(3000):
        for line in Path("/proc/locks").read_text().splitlines():
            if match := re.search(rf"-> FLOCK .* (\d+) \S+:{inode} ", line):
                return int(match[1])
        select.select([], [], [], 0.02)
    raise AssertionError("nobody waits")


@pytest.mark.skipif(sys.platform != "linux", reason="on Linux only a process hears of its parent's end")
def test_a_command_on_a_stack_ends_with_the_make_that_was_killed(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "bezel"), "local", "up", "l4-qat", "--dir", str(tmp_path / "cloud")]
    (tmp_path / "Makefile").write_text(f"up:\n\t@{' '.join(command)}\n")
    (tmp_path / "cloud").mkdir(mode=0o700)
    lock = tmp_path / "cloud" / "use.lock"
    with lock.open("w") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        make = subprocess.Popen(["make", "-f", tmp_path / "Makefile", "up"], cwd=ROOT)
        try:
            process = os.pidfd_open(waiting_for(lock))
        finally:
            make.kill()
            make.wait(60)
        ended = is_readable(process, 60)
        if not ended:
            signal.pidfd_send_signal(process, signal.SIGKILL)
        os.close(process)
    assert ended
