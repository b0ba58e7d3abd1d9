"""The forge to look at ends with one command, or with its keeper, and leaves neither process nor file."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ended import has_ended
from tests.support.gitops.machine import MARK
from tests.support.gitops.working_copy import ROOT
from tools.forge.keeper import text
from tools.forge.place import Place

pytestmark = pytest.mark.slow
SECONDS = 60.0
# A keeper whose signal handler is that of the real one, or none.
KEEPER = """
import signal, sys, time
from tools.forge.place import Place
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with Place.at(sys.argv[1]).hold_lock():
    print("kept", flush=True)
    time.sleep(600)
"""
CHILD = [sys.executable, "-c", "print('runs', flush=True); import time; time.sleep(600)"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place.at(str(tmp_path / "forge"))
    made.prepare()
    return made


def keeper(place: Place, kind: str = "usual") -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", KEEPER, str(place.folder), kind]
    started = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "kept\n"
    return started


def left_behind(place: Place) -> list[int]:
    """Processes as a killed keeper leaves them: of the forge, and of a runner."""
    marks = {"GITEA_WORK_DIR": place.folder / "gitea", MARK: place.folder / "runner-0"}
    (place.folder / "runner-0").mkdir()
    pids = []
    for name, value in marks.items():
        variables = {**os.environ, name: str(value)}
        started = subprocess.Popen(CHILD, env=variables, start_new_session=True, stdout=subprocess.PIPE)
        assert started.stdout is not None
        started.stdout.readline()  # the kernel takes over a program before it shows its variables
        pids.append(started.pid)
    return pids


@pytest.mark.parametrize(("kind", "seconds", "is_in_time"), [("usual", SECONDS, True), ("deaf", 1.0, False)])
def test_a_keeper_ends_in_time_or_is_killed(place: Place, kind: str, seconds: float, is_in_time: bool) -> None:
    started = keeper(place, kind)
    assert place.is_kept()
    assert (place.end(seconds), place.is_kept()) == (is_in_time, False)
    assert started.wait(SECONDS) == (-signal.SIGTERM if is_in_time else -signal.SIGKILL)
    assert place.end(seconds), "without a keeper there is nothing to end"


def test_what_a_killed_keeper_left_is_ended_and_another_place_is_not(place: Place, tmp_path: Path) -> None:
    other = Place.at(str(tmp_path / "other"))
    other.prepare()
    here, others = left_behind(place), left_behind(other)
    place.clear()
    assert all(map(has_ended, here))
    assert not place.folder.exists()
    assert all(Path(f"/proc/{pid}").exists() for pid in others)
    other.clear()
    assert all(map(has_ended, others))
    other.clear()


def test_only_this_user_reads_the_place(place: Place) -> None:
    assert place.folder.stat().st_mode & 0o777 == 0o700


def test_what_to_try_are_commands_of_a_shell_in_short_rows(place: Place) -> None:
    shown = text("http://127.0.0.1:43210", "-a_Very-long_password", 1, place)
    rows = [row for row in shown.splitlines() if str(place.ready) not in row]
    assert max(map(len, rows)) <= 80
    commands = [row for row in rows if row.startswith("  ") and "://127.0.0.1:43210/team/gemma/" not in row]
    script = "\n".join(row for row in commands if not row.startswith("      the "))
    assert script.count("\n") > 8
    assert subprocess.run(["bash", "-n", "-c", script], capture_output=True, timeout=60, check=True).stderr == b""
    for word in ("make forge-down", "pulls/1/merge", "git clone http://dev:-a_Very-long_password@127.0.0.1:43210/"):
        assert word in shown


def test_down_without_a_forge_says_so(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tools.forge", "down"], cwd=ROOT, capture_output=True, text=True, check=False,
        timeout=60, env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert (run.returncode, run.stderr + run.stdout) == (0, "no forge runs here\n")
