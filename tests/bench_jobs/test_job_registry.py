"""Notes of what load jobs have made: one run each, found when it was killed, gone when it has tidied up."""

import os
import signal
import subprocess
import sys

import pytest

from bezel.bench_jobs.job_registry import JobRecord, left, noted, state_folder
from bezel.errors import UserError

MADE = JobRecord("p", "us-east4", "bezel-bench-1", "gs://b/bezel-bench-1", "aa")


def test_a_note_is_nobodys_while_its_run_lives_and_gone_when_it_is_forgotten(tmp_path):
    with noted(MADE, tmp_path) as forget:
        assert left(tmp_path) == []
        forget()
    assert left(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_forgotten_is_left_and_may_be_noted_anew(tmp_path):
    with noted(MADE, tmp_path):
        pass
    assert left(tmp_path) == [MADE]
    again = JobRecord(*(*(getattr(MADE, name) for name in ("project", "region", "job", "place")), "bb"))
    with noted(again, tmp_path):
        pass
    assert left(tmp_path) == [again]


def test_two_runs_do_not_make_the_same_at_once_and_may_make_different_things(tmp_path):
    other = JobRecord("p", "us-east4", "bezel-bench-2", "gs://b/bezel-bench-2", "cc")
    with noted(MADE, tmp_path), noted(other, tmp_path):
        with pytest.raises(UserError, match=r"another run on this machine loads the same server \(job bezel-bench-1\)"):
            noted(MADE, tmp_path).__enter__()
        assert left(tmp_path) == []


def test_a_killed_runs_note_is_found(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from bezel.bench_jobs.job_registry import JobRecord, noted\n"
        f"with noted(JobRecord(*{tuple(vars(MADE).values())!r}), Path(sys.argv[1])):\n"
        "    print('noted', flush=True); time.sleep(60)"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "noted\n"
    assert left(tmp_path) == []
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=10)
    assert left(tmp_path) == [MADE]


def test_what_is_no_note_is_passed_over(tmp_path):
    (tmp_path / "half.json").write_text('{"project": "p"')
    (tmp_path / "other.json").write_text('{"project": "p"}')
    assert left(tmp_path) == []
    assert left(tmp_path / "absent") == []


def test_the_notes_lie_with_the_users_state(tmp_path):
    assert state_folder({"XDG_STATE_HOME": str(tmp_path)}) == tmp_path / "bezel" / "load-jobs"
