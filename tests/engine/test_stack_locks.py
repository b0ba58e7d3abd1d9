"""A stack's lock in the bucket: one holder at a time, named to those who wait, and given up by the dead alone."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel.engine.locks.engine_locks import STOP_SECONDS
from bezel.engine.locks.held import TOKEN
from bezel.engine.locks.process import Process, this_process
from bezel.engine.locks.record import Lock, Owner, Run, parse, to_json
from bezel.engine.locks.status import remove_lock, status_of
from bezel.engine.locks.taker import Surroundings, hold, owner_of
from bezel.engine.outcomes import LockedError
from bezel.engine.run.under_lock import run_under
from bezel.rest import RestError, UnreachableError
from tests.support.ended import has_ended
from tests.support.gitops.fake_bucket import fake_bucket
from tests.support.rest.fake_google import Answer

NAME = "locks/bezel/dev.json"
ENGINE = ".pulumi/locks/organization/bezel/dev/0b4b1f0e.json"
ELSEWHERE = Process("another boot/pid:[1]", 42, 7)
RUN = Run("https://forge.example", "team/gemma", "7", "1", "deploy", "ann", "c" * 40, "https://forge.example/run/7")
LOCK = Lock("bezel", "dev", "t" * 32, "2026-11-01T10:00:00Z", Owner("runner", "vm-1", ELSEWHERE, RUN))
DEAD = replace(LOCK, owner=replace(LOCK.owner, process=replace(this_process(), started=1), run=None))


class Time:
    """Time that only waiting moves; `at` runs something at a moment."""

    def __init__(self):
        self.now, self.at = 0.0, {}

    def sleep(self, seconds):
        self.now += seconds
        for moment in [moment for moment in self.at if moment <= self.now]:
            self.at.pop(moment)()


@pytest.fixture
def bucket():
    with fake_bucket() as served:
        yield served


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def lines():
    return []


@pytest.fixture
def around(time, lines):
    """Surroundings in which the forge's runs are all active."""
    return Surroundings({}, lambda _: "running", lines.append, clock=lambda: time.now, sleep=time.sleep)


def states_of(state):
    return lambda _: state


def engine_lock(**changes):
    content = {"pid": 42, "username": "runner", "hostname": "vm-1", "timestamp": "2026-11-01T10:00:30.5Z"} | changes
    return json.dumps(content).encode(), 5


def test_the_lock_is_there_while_the_block_runs_and_says_who(bucket, around):
    with hold(bucket.client(), "bezel", "dev", 60, around):
        lock = parse(bucket.objects[NAME][0])
        assert lock.owner.process == this_process()
        assert lock.owner.host == socket.gethostname()
    assert bucket.objects == {}


def test_the_lock_is_released_when_the_block_fails(bucket, around):
    with pytest.raises(ZeroDivisionError), hold(bucket.client(), "bezel", "dev", 60, around):
        raise ZeroDivisionError
    assert bucket.objects == {}


@pytest.mark.slow
@pytest.mark.parametrize("state", ["running", "unknown"])
def test_the_lock_of_a_living_or_unknown_run_is_waited_for_and_never_taken(bucket, around, lines, time, state):
    bucket.objects[NAME] = (to_json(LOCK), 9)
    around = replace(around, run_state=states_of(state))
    with pytest.raises(LockedError) as caught, hold(bucket.client(), "bezel", "dev", 900, around):
        pytest.fail("it was taken")
    assert caught.value.exit_code == 5
    for part in ("run 7, job deploy of team/gemma, started by ann", RUN.url, "--break 9", LOCK.since):
        assert part in str(caught.value)
    assert bucket.objects == {NAME: (to_json(LOCK), 9)}
    assert 895 < time.now <= 905
    assert len(lines) == 15
    assert all("started by ann" in line for line in lines)


def test_without_a_wait_the_owner_is_named_at_once(bucket, around, time, lines):
    bucket.objects[NAME] = (to_json(LOCK), 9)
    with pytest.raises(LockedError), hold(bucket.client(), "bezel", "dev", 0, around):
        pass
    assert (time.now, lines) == (0, [])


@pytest.mark.slow
def test_a_released_lock_is_taken_by_the_one_that_waits(bucket, around, time):
    bucket.objects[NAME] = (to_json(LOCK), 9)
    time.at[30] = bucket.objects.clear
    with hold(bucket.client(), "bezel", "dev", 60, around) as lock:
        assert parse(bucket.objects[NAME][0]) == lock.lock
        assert lock.lock.after == ()


def test_the_lock_of_an_ended_run_is_taken_over_in_its_place(bucket, around, lines):
    bucket.objects[NAME] = (to_json(LOCK), 9)
    with hold(bucket.client(), "bezel", "dev", 0, replace(around, run_state=states_of("ended"))) as lock:
        assert parse(bucket.objects[NAME][0]) == lock.lock
        assert lock.lock.after == ((LOCK.since, LOCK.owner),)
    assert bucket.objects == {}
    assert "its run has ended" in lines[0]


def test_a_run_that_ends_while_another_waits_is_noticed(bucket, around, time):
    bucket.objects[NAME] = (to_json(LOCK), 9)
    ended = []
    time.at[100] = lambda: ended.append(True)
    asked = []

    def state(run):
        asked.append(run)
        return "ended" if ended else "running"

    with hold(bucket.client(), "bezel", "dev", 900, replace(around, run_state=state)):
        pass
    assert 100 <= time.now <= 130
    assert len(asked) <= 7  # the forge is not asked at each look


def test_a_content_that_is_not_a_lock_is_left_alone(bucket, around):
    bucket.objects[NAME] = (b"{}", 9)
    with pytest.raises(LockedError, match="an unknown owner"), hold(bucket.client(), "bezel", "dev", 5, around):
        pass
    assert bucket.objects == {NAME: (b"{}", 9)}


def test_a_command_below_the_lock_takes_none_of_its_own_and_releases_none(bucket, around):
    with hold(bucket.client(), "bezel", "dev", 0, around) as outer:
        below = replace(around, environ=outer.environment)
        with hold(bucket.client(), "bezel", "dev", 0, below) as inner:
            assert (inner.is_own, inner.lock) == (False, outer.lock)
        assert NAME in bucket.objects
        with (
            pytest.raises(LockedError),
            hold(bucket.client(), "bezel", "dev", 0, replace(around, environ={TOKEN: "x"})),
        ):
            pass


@pytest.mark.parametrize("replaced", [False, True])
def test_an_answer_that_is_lost_leaves_one_lock_which_is_released(bucket, around, replaced):
    bucket.objects |= {NAME: (to_json(DEAD), 9)} if replaced else {}
    bucket.lost = 2
    with hold(bucket.client(), "bezel", "dev", 0, around) as lock:
        assert bucket.objects[NAME][1] == lock.generation
    assert bucket.objects == {}


def test_a_lock_whose_answer_never_comes_is_not_left_behind(bucket, around):
    bucket.gate = lambda call: Answer(503) if call.method == "POST" and bucket.objects else None
    bucket.lost = 1
    with pytest.raises(RestError), hold(bucket.client(seconds=2), "bezel", "dev", 0, around):
        pytest.fail("it counts as taken")
    assert bucket.objects == {}


def test_another_engine_is_waited_for_and_its_lock_kept(bucket, around, lines):
    bucket.objects[ENGINE] = engine_lock(hostname="laptop", username="ben")
    refused = pytest.raises(LockedError, match=r"(?s)the engine of ben on laptop.*`pulumi cancel")
    with refused, hold(bucket.client(), "bezel", "dev", 60, around):
        pytest.fail("an engine works on the stack")
    assert list(bucket.objects) == [ENGINE]
    assert "the engine's own lock" in lines[0]


@pytest.mark.slow
def test_the_engine_s_lock_of_a_dead_run_is_removed_after_its_time(bucket, around, time, lines):
    """The engine's lock of a dead run is removed when its engine must have stopped."""
    bucket.objects |= {NAME: (to_json(LOCK), 9), ENGINE: engine_lock()}
    other = ENGINE.replace("/dev/", "/dev2/")
    bucket.objects[other] = engine_lock()
    with hold(bucket.client(), "bezel", "dev", 0, replace(around, run_state=states_of("ended"))):
        assert ENGINE not in bucket.objects
    assert list(bucket.objects) == [other]
    assert STOP_SECONDS <= time.now < STOP_SECONDS + 10
    assert "removed the engine's lock" in lines[-1]


def test_an_engine_of_a_dead_run_that_ends_by_itself_is_not_awaited(bucket, around, time):
    """A dead run's engine that ends by itself is not waited for any longer."""
    bucket.objects |= {NAME: (to_json(LOCK), 9), ENGINE: engine_lock()}
    time.at[20] = lambda: bucket.objects.pop(ENGINE)
    with hold(bucket.client(), "bezel", "dev", 0, replace(around, run_state=states_of("ended"))):
        assert time.now <= 25


@pytest.mark.slow
def test_a_taker_that_died_in_between_leaves_the_engine_s_lock_to_the_next(bucket, around):
    first = replace(DEAD, since="2026-11-01T11:00:00Z").taken_over(LOCK)
    bucket.objects |= {NAME: (to_json(first), 9), ENGINE: engine_lock()}
    with hold(bucket.client(), "bezel", "dev", 0, around) as lock:
        assert ENGINE not in bucket.objects
        assert len(lock.lock.after) == 2


@pytest.mark.slow
def test_an_engine_of_a_dead_process_of_this_machine_counts_as_dead(bucket, around, time):
    """An engine of a dead process of this machine is seen as dead at once."""
    owner = owner_of({})
    dead = replace(DEAD, owner=replace(owner, process=replace(owner.process, started=1)))
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    bucket.objects |= {NAME: (to_json(dead), 9)}
    bucket.objects[ENGINE] = engine_lock(pid=gone.pid, hostname=owner.host, username=owner.user)
    with hold(bucket.client(), "bezel", "dev", 0, around):
        assert time.now == 0
    alive = engine_lock(pid=1, hostname=owner.host, username=owner.user, timestamp="2099-01-01T00:00:00Z")
    bucket.objects |= {NAME: (to_json(dead), 9), ENGINE: alive}
    with pytest.raises(LockedError, match="process 1"), hold(bucket.client(), "bezel", "dev", 0, around):
        pass
    assert list(bucket.objects) == [ENGINE]


class Schedule:
    """Serves the requests of several takers one by one, in the order of drawn numbers."""

    def __init__(self, takers, order):
        self.left, self.order, self.waiting, self.turn = takers, list(order), {}, threading.Condition()

    def gate(self, call):
        me = call.headers["authorization"]
        with self.turn:
            self.waiting[me] = False
            self._choose()
            assert self.turn.wait_for(lambda: self.waiting[me], timeout=60)
            del self.waiting[me]

    def is_done(self):
        with self.turn:
            self.left -= 1
            self._choose()

    def _choose(self):
        if self.waiting and len(self.waiting) == self.left and not any(self.waiting.values()):
            names = sorted(self.waiting)
            self.waiting[names[(self.order.pop() if self.order else 0) % len(names)]] = True
            self.turn.notify_all()


@pytest.mark.slow
@settings(max_examples=25)
@given(
    order=st.lists(st.integers(0, 5), min_size=4, max_size=60),
    first=st.sampled_from([None, DEAD, replace(DEAD, owner=owner_of({}))]),
    lost=st.integers(0, 2),
)
def test_of_several_takers_at_once_one_holds_the_lock_whatever_the_order(order, first, lost):
    with fake_bucket() as bucket:
        if first is not None:
            bucket.objects[NAME] = (to_json(first), 9)
        bucket.lost, schedule = lost, Schedule(3, order)
        bucket.gate = schedule.gate
        inside, most, outcomes = [], [], []

        def take(number):
            time = Time()
            around = Surroundings({}, states_of("unknown"), lambda _: None, clock=lambda: time.now, sleep=time.sleep)
            states = bucket.client(token=f"taker-{number}")
            try:
                with hold(states, "bezel", "dev", 15, around) as lock:
                    inside.append(number)
                    most.append(len(inside))
                    assert states.read(NAME)[1] == lock.generation
                    inside.remove(number)
                outcomes.append("held")
            except LockedError:
                outcomes.append("locked")
            finally:
                schedule.is_done()

        threads = [threading.Thread(target=take, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(outcomes) == 3
        assert max(most, default=0) <= 1
        assert ("held" in outcomes) == (first is None or first == DEAD)
        assert (NAME in bucket.objects) == (first is not None and first != DEAD)


@pytest.mark.slow
def test_a_holder_that_was_taken_over_notices_and_interrupts(bucket, around):
    interrupted = threading.Event()
    with hold(bucket.client(), "bezel", "dev", 0, around) as lock:
        with lock.watch(interrupted.set, seconds=0.01):
            assert not interrupted.wait(0.05)
            bucket.objects[NAME] = (to_json(LOCK), 99)
            assert interrupted.wait(60)
        with pytest.raises(LockedError, match="run 7"):
            lock.check()
    assert bucket.objects == {NAME: (to_json(LOCK), 99)}


@pytest.mark.slow
def test_a_failed_reading_is_not_a_lost_lock(bucket, around):
    with hold(bucket.client(), "bezel", "dev", 0, around) as lock:
        bucket.forbidden = {"storage.objects.get"}
        with lock.watch(lambda: pytest.fail("interrupted"), seconds=0.01):
            threading.Event().wait(0.1)
        bucket.forbidden = set()
        assert lock.look()


@pytest.mark.slow
def test_a_command_runs_under_the_lock_and_its_exit_code_is_returned(bucket, around):
    script = f"import os, sys; sys.exit(3 if os.environ['{TOKEN}'] else 1)"
    with hold(bucket.client(), "bezel", "dev", 0, around) as lock:
        assert run_under(lock, [sys.executable, "-S", "-c", script], dict(os.environ)) == 3
        with pytest.raises(Exception, match="cannot be started"):
            run_under(lock, ["/no/such/program"], {})
    assert bucket.objects == {}


@pytest.mark.slow
def test_a_killed_command_leaves_nothing_that_it_started(bucket, around, tmp_path):
    script = f"sleep 60 & echo $! > {tmp_path}/started; kill -s KILL $$"
    with hold(bucket.client(), "bezel", "dev", 0, around) as lock:
        assert run_under(lock, ["sh", "-c", script], dict(os.environ)) == 128 + signal.SIGKILL
    assert has_ended(int((tmp_path / "started").read_text()))


@pytest.mark.slow
def test_the_command_of_a_run_that_lost_its_lock_is_ended(bucket, around):
    with hold(bucket.client(), "bezel", "dev", 0, around) as lock:
        bucket.objects[NAME] = (to_json(LOCK), 99)
        with pytest.raises(LockedError, match="run 7"):
            run_under(lock, ["sleep", "60"], dict(os.environ), watch_seconds=0.01)
    assert bucket.objects == {NAME: (to_json(LOCK), 99)}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_command_and_the_lock_is_released(bucket, around, number):
    script = "import os, signal, time; os.kill(os.getppid(), int(os.environ['NUMBER'])); time.sleep(60)"
    environ = dict(os.environ) | {"NUMBER": str(int(number))}
    with hold(bucket.client(), "bezel", "dev", 0, around) as lock:
        code = run_under(lock, [sys.executable, "-S", "-c", script], environ)
    assert code in {128 + number, 1}  # Python itself ends with 1 on an interrupt that it shows
    assert bucket.objects == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_outside_a_command_ends_the_block_and_releases_the_lock(bucket, around, number):
    before = signal.getsignal(number)

    def stop():
        with hold(bucket.client(), "bezel", "dev", 0, around):
            os.kill(os.getpid(), number)
            threading.Event().wait(5)

    with pytest.raises(SystemExit) as caught:
        stop()
    assert caught.value.code == 128 + number
    assert bucket.objects == {}
    assert signal.getsignal(number) == before


@pytest.mark.slow
def test_the_status_names_the_owner_and_a_person_removes_what_was_seen(bucket, around):
    states = bucket.client()
    assert status_of(states, "bezel", "dev", around).text() == "dev is not locked\n"
    bucket.objects |= {NAME: (to_json(LOCK), 9), ENGINE: engine_lock()}
    status = status_of(states, "bezel", "dev", around)
    for form in (status.text(), status.markdown()):
        assert "started by ann" in form
        assert "generation 9" in form
        assert "its run is active: it counts as living" in form
        assert "the engine of runner on vm-1" in form
    content = json.loads(json.dumps(status.as_json()))
    assert (content["locked"], content["generation"], content["run"]["id"]) == (True, "9", "7")
    with pytest.raises(LockedError, match="generation 9"):
        remove_lock(states, "bezel", "dev", 8, around)
    assert NAME in bucket.objects
    assert remove_lock(states, "bezel", "dev", 9, around).lock == LOCK
    assert list(bucket.objects) == [ENGINE]


def test_a_forge_that_fails_leaves_the_run_unknown_and_says_so(bucket, around, lines):
    def fails(_):
        raise UnreachableError("the forge did not answer")

    bucket.objects[NAME] = (to_json(LOCK), 9)
    with pytest.raises(LockedError), hold(bucket.client(), "bezel", "dev", 0, replace(around, run_state=fails)):
        pass
    assert "the forge did not answer" in lines[0]
