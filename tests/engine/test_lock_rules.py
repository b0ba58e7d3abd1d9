"""Rules of a stack's lock: an owner has ended only where that is known, and so has the engine of a dead run."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.engine.locks import engine_locks
from bezel.engine.locks.engine_locks import STOP_SECONDS, EngineLock
from bezel.engine.locks.held import BLIND_SECONDS, WATCH_SECONDS
from bezel.engine.locks.process import Process, is_alive, started_at, this_process
from bezel.engine.locks.record import Lock, Owner, Run, judge, object_name, parse, run_of, to_json
from bezel.engine.locks.taker import owner_of, run_state
from bezel.engine.run.process import GRACE_SECONDS
from bezel.forge import forge_of
from bezel_base.errors import UserError
from bezel_base.process_status import MOST_PID
from tests.support.gitops.fake_forge import REPOSITORY, fake_forge

SERVER = "https://forge.example"
ELSEWHERE = Process("another boot/pid:[1]", 42, 7)
RUN = Run(SERVER, "team/gemma", "7", "1", "deploy", "ann", "c" * 40, f"{SERVER}/team/gemma/actions/runs/7")
LOCK = Lock("bezel", "dev", "t" * 32, "2026-11-01T10:00:00Z", Owner("runner", "vm-1", ELSEWHERE, RUN))


def by(process=ELSEWHERE, run=RUN):
    return replace(LOCK, owner=replace(LOCK.owner, process=process, run=run))


@pytest.mark.parametrize(
    ("state", "has_ended", "reason"),
    [
        ("running", False, "its run is active"),
        ("ended", True, "its run has ended"),
        ("unknown", False, "does not say"),
    ],
)
def test_the_owner_on_another_machine_has_ended_only_if_the_forge_says_so(state, has_ended, reason):
    verdict = judge(LOCK, None, is_alive=is_alive, run_state=lambda _: state)
    assert verdict.has_ended is has_ended
    assert reason in verdict.reason


@pytest.mark.parametrize("state", ["running", "ended", "unknown"])
def test_a_process_of_this_machine_decides_whatever_the_forge_says(state):
    living, gone = this_process(), replace(this_process(), started=1)
    assert not judge(by(living), None, is_alive=is_alive, run_state=lambda _: state).has_ended
    assert judge(by(gone), None, is_alive=is_alive, run_state=lambda _: state).has_ended


def test_a_person_elsewhere_and_an_unreadable_lock_count_as_living():
    """A person on another machine and an unreadable lock count as living."""
    for lock in (by(run=None), None):
        assert not judge(lock, RUN, is_alive=is_alive, run_state=lambda _: "ended").has_ended


@pytest.mark.parametrize(
    ("asking", "has_ended"),
    [
        (replace(RUN, attempt="2"), True),
        (RUN, False),  # another job of the same matrix
        (replace(RUN, attempt="2", job="nightly"), False),  # Gitea counts the attempts of each job
        (replace(RUN, attempt="2", id="8"), False),
        (replace(RUN, attempt="2", repository="team/other"), False),
        (replace(RUN, attempt=""), False),
    ],
)
def test_a_later_attempt_of_the_same_job_ends_the_earlier_one(asking, has_ended):
    """A later attempt of the same job means that the earlier one is over."""
    assert judge(LOCK, asking, is_alive=is_alive, run_state=lambda _: "running").has_ended is has_ended


def test_a_process_is_known_by_its_start_and_its_machine():
    process = this_process()
    assert is_alive(process) is True
    assert is_alive(replace(process, started=process.started + 1)) is False
    assert is_alive(replace(process, pid=2**22 + 1)) is False
    assert is_alive(replace(process, machine="another")) is None
    assert is_alive(replace(process, machine="")) is None


texts = st.text(max_size=20)
runs = st.builds(Run, *[texts] * 8)
processes = st.builds(Process, texts, st.integers(1, MOST_PID), st.integers(0, 2**63 - 1))
owners = st.builds(Owner, texts, texts, processes, st.none() | runs)
locks = st.builds(Lock, *[texts] * 4, owners, st.lists(st.tuples(texts, owners), max_size=2).map(tuple))


@pytest.mark.slow
@given(locks)
def test_a_record_is_read_as_it_was_written(lock):
    assert parse(to_json(lock)) == lock
    assert "\n" not in lock.text
    assert "\x1b" not in lock.text


@pytest.mark.slow
@given(st.binary() | st.sampled_from([b"{}", b"[]", b"null", b'{"version": 1}', to_json(LOCK).replace(b"1", b"2", 1)]))
def test_any_other_content_is_no_lock_of_this_version(content):
    assert parse(content) is None


def test_a_chain_of_dead_owners_is_kept_and_bounded():
    lock = LOCK
    for _ in range(9):
        lock = LOCK.taken_over(lock)
    assert len(lock.after) == 5
    assert lock.after[0] == (LOCK.since, LOCK.owner)


@pytest.mark.parametrize("stack", ["", "a/b", "..\n", "é", "x" * 101])
def test_a_name_that_no_stack_can_have_is_refused(stack):
    with pytest.raises(UserError, match="STACK"):
        object_name("bezel", stack)


def test_each_stack_of_each_project_has_an_object_of_its_own():
    assert object_name("bezel", "dev") == "locks/bezel/dev.json"
    assert object_name("a/b", "c") != object_name("a", "b")


def test_the_owner_is_the_run_of_the_forge_or_the_user_of_the_host():
    environ = {
        "GITHUB_SERVER_URL": f"{SERVER}/",
        "GITHUB_REPOSITORY": "team/gemma",
        "GITHUB_RUN_ID": "7",
        "GITHUB_RUN_ATTEMPT": "2",
        "GITHUB_JOB": "deploy",
        "GITHUB_ACTOR": "ann",
        "GITHUB_SHA": "c" * 40,
    }
    owner = owner_of(environ)
    assert owner.text == (
        "run 7, attempt 2, job deploy of team/gemma, started by ann: https://forge.example/team/gemma/actions/runs/7"
    )
    assert run_of({name: value for name, value in environ.items() if name != "GITHUB_RUN_ID"}) is None
    assert owner_of({}).text.startswith(f"{owner.user} on {owner.host} (process ")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["github", "gitea"])
def test_the_forge_is_asked_for_the_run_that_the_lock_names(kind):
    with fake_forge(kind) as served:
        environ = served.environ() | {"GITHUB_JOB": "deploy"}
        forge, run = forge_of(environ), run_of(environ)
        served.runs |= {5: {"status": "completed"}, 6: {"status": "in_progress"}}

        def state(number, **changes):
            asked = Run(served.address, REPOSITORY, number, "1", "deploy", "", "", "")
            return run_state(forge, replace(asked, **changes), run)

        assert [state("5"), state("6"), state("404")] == ["ended", "running", "unknown"]
        assert state("5", server="https://another.example") == "unknown"
        served.runs[7] = {"status": "in_progress", "run_attempt": 2}
        later = replace(run, attempt="2")
        first = replace(run, job="nightly")
        assert run_state(forge, first, later) == ("ended" if kind == "github" else "running")
        assert run_state(None, run, run) == "unknown"


def engine_lock(**changes):
    lock = EngineLock("x.json", 1, 999, "runner", "vm-1", "2026-11-01T10:00:30.123456789Z")
    return replace(lock, **changes)


@pytest.mark.parametrize(
    ("changes", "seconds", "state"),
    [
        ({}, STOP_SECONDS, "left"),
        ({}, STOP_SECONDS - 1, "stopping"),
        ({"since": "2026-11-01T12:00:30.1+02:00"}, STOP_SECONDS, "left"),
        ({"since": "2026-11-01T09:59:00Z"}, STOP_SECONDS, "living"),  # before that run took the stack's lock
        ({"host": "laptop"}, STOP_SECONDS, "living"),
        ({"user": "ann"}, STOP_SECONDS, "living"),
        ({"since": ""}, STOP_SECONDS, "living"),
        ({"host": "", "user": ""}, STOP_SECONDS, "living"),
    ],
)
def test_an_engine_s_lock_is_removed_only_if_its_own_run_has_ended(changes, seconds, state):
    """An engine's lock is removed only if the ended run's engine took it."""
    assert engine_state(engine_lock(**changes), seconds=seconds) == state


def engine_state(lock, *, machine="here", process=ELSEWHERE, started=None, seconds=0.0):
    ended = [(LOCK.since, replace(LOCK.owner, process=process))]
    return engine_locks.state_of(
        lock, ended, machine=machine, started_at=lambda _: started, seconds_since_takeover=seconds
    )


@pytest.mark.parametrize(
    ("started", "state"),
    [
        (None, "left"),  # no such process
        (1_793_527_229.0, "living"),
        (1_793_527_229.0 + 3600, "left"),  # another process with the same id
    ],
)
def test_an_engine_on_this_machine_is_seen_by_its_process(started, state):
    process = replace(ELSEWHERE, machine="here")
    assert engine_state(engine_lock(), process=process, started=started) == state


def test_without_an_ended_run_every_engine_s_lock_is_a_living_one_s():
    lock = engine_lock()
    assert engine_locks.state_of(lock, [], machine="", started_at=started_at, seconds_since_takeover=1e9) == "living"


def test_the_wait_for_an_engine_covers_its_own_time_to_stop():
    """The wait for an engine covers the watch and the engine's own time to stop."""
    assert WATCH_SECONDS + BLIND_SECONDS + sum(GRACE_SECONDS) < STOP_SECONDS
