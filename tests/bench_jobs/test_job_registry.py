"""Notes of what load jobs have made: one run each, found when it was killed, gone when it has tidied up."""

import os
import signal
import subprocess
import sys

import pytest

from bezel.bench_jobs.job_registry import JobRecord, hold_record, orphaned_records
from bezel_base.errors import UserError

MADE = JobRecord("p", "us-east4", "bezel-bench-1", "gs://b/bezel-bench-1", "aa")


def test_a_note_is_gone_when_its_run_is_forgotten(tmp_path):
    """A note is nobody's while its run lives and gone when it is forgotten."""
    with hold_record(MADE, tmp_path) as forget:
        assert orphaned_records(tmp_path) == []
        forget()
    assert orphaned_records(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_forgotten_is_left_and_may_be_noted_anew(tmp_path):
    with hold_record(MADE, tmp_path):
        pass
    assert orphaned_records(tmp_path) == [MADE]
    again = JobRecord(*(*(getattr(MADE, name) for name in ("project", "region", "job", "place")), "bb"))
    with hold_record(again, tmp_path):
        pass
    assert orphaned_records(tmp_path) == [again]


def test_two_runs_do_not_make_the_same_at_once(tmp_path):
    """Two runs do not make the same at once and may make different things."""
    other = JobRecord("p", "us-east4", "bezel-bench-2", "gs://b/bezel-bench-2", "cc")
    with hold_record(MADE, tmp_path), hold_record(other, tmp_path):
        with pytest.raises(UserError, match=r"(?s)job bezel-bench-1 in us-east4.*another run on this machine"):
            hold_record(MADE, tmp_path).__enter__()
        assert orphaned_records(tmp_path) == []


@pytest.mark.slow
def test_a_killed_runs_note_is_found(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from bezel.bench_jobs.job_registry import JobRecord, hold_record\n"
        f"with hold_record(JobRecord(*{tuple(vars(MADE).values())!r}), Path(sys.argv[1])):\n"
        "    print('noted', flush=True); time.sleep(60)"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "noted\n"
    assert orphaned_records(tmp_path) == []
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    assert orphaned_records(tmp_path) == [MADE]


def test_what_is_no_note_is_passed_over(tmp_path):
    (tmp_path / "half.json").write_text('{"project": "p"')
    (tmp_path / "other.json").write_text('{"project": "p"}')
    assert orphaned_records(tmp_path) == []
    assert orphaned_records(tmp_path / "absent") == []


def test_the_records_are_in_the_users_state_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with hold_record(MADE):
        assert list((tmp_path / "bezel" / "load-jobs").iterdir())
