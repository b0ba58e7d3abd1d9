"""Tasks of one load, against a server on loopback: started together, each with its share, or with the reason."""

import threading
import time

import pytest

from bench_support.wire import good, serving
from bezel_base.errors import UserError
from bezel_bench.distributed import protocol
from bezel_bench.distributed.merge import merge
from bezel_bench.distributed.protocol import Part, Plan
from bezel_bench.distributed.worker import run_task
from bezel_bench.load.plan import Closed, Constant, Load, PromptPlan, Stop, Target

AHEAD = 3_000_000_000  # a busy machine takes more than a second to connect the tasks


class Shelf:
    """A place in memory whose clock may be another than this machine's (ns)."""

    def __init__(self, ahead=0):
        self.documents, self.contents, self._ahead = {}, {}, ahead

    def read(self, name):
        return self.documents.get(name)

    def write(self, name, document):
        self.documents[name] = document
        # As Cloud Storage does: whole milliseconds.
        return (time.time_ns() + self._ahead) // 1_000_000 * 1_000_000

    def get(self, name):
        return self.contents[name]

    def put(self, name, content):
        self.contents[name] = content


def plan(url, tasks, pattern=None, wait=60.0, code=None, **stop):
    prompts = PromptPlan(kind="file", file="texts.txt", output_tokens=2)
    target = Target(url, "mock", public=True)
    load = Load(target, pattern or Closed(4), Stop(**(stop or {"requests": 12})), prompts, workers=tasks)
    return Plan(load, wait, code or protocol.code(), texts=True)


def shelf_of(made, **options):
    shelf = Shelf(**options)
    shelf.write(protocol.PLAN, made.document())
    shelf.put(protocol.TEXTS, b"one text\nanother text\n")
    return shelf


def task(shelf, number):
    run_task(shelf, number, lambda _: dict, lambda _: None)


def send_load(made, tasks):
    """All tasks of a plan, started when each is ready, later where one was late; (the instant, their parts)."""
    for ahead in (AHEAD, 10 * AHEAD):
        shelf = shelf_of(made)
        at = start_tasks(shelf, tasks, ahead)
        documents = [shelf.documents[protocol.part(number)] for number in range(tasks)]
        if not any("after the start" in document.get("failed", "") for document in documents):
            break
    return at, [
        Part.of(document, shelf.contents[protocol.samples(number)])
        for number, document in enumerate(documents)
        if "failed" not in document
    ]


def start_tasks(shelf, tasks, ahead):
    """Start all tasks so long (ns) after each is ready, and wait for their ends; the instant of the start."""
    running = [threading.Thread(target=task, args=(shelf, number)) for number in range(tasks)]
    for one in running:
        one.start()
    deadline = time.monotonic() + 60
    while not all(protocol.ready(number) in shelf.documents for number in range(tasks)):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    at = time.time_ns() + ahead
    shelf.write(protocol.START, {"at": at})
    for one in running:
        one.join(60)
    return at


@pytest.mark.slow
def test_tasks_share_one_load_and_begin_at_one_instant():
    with serving(good) as wire:
        at, parts = send_load(plan(wire.url, 2), 2)
    for one in parts:
        assert abs(one.measured.began - one.clock.monotonic + one.clock.realtime - at) < 1000
        assert min(sample.sent for sample in one.measured.samples) >= one.measured.began
        assert one.clock.low <= 0 <= one.clock.high
    now = time.time_ns(), time.monotonic_ns()
    merged = merge(parts, 2, *now)
    assert [sample.index for sample in merged.measured.samples] == [*range(12)]
    assert {sample.worker for sample in merged.measured.samples} == {0, 1}
    assert {sample.user for sample in merged.measured.samples} == {0, 1, 2, 3}
    assert not any(sample.failure for sample in merged.measured.samples)
    assert b"one text" in wire.asked[0].body or b"another text" in wire.asked[0].body
    assert merged.by["workers"] == 1


@pytest.mark.slow
def test_an_open_loops_instants_are_dealt_to_the_tasks():
    with serving(good) as wire:
        _, parts = send_load(plan(wire.url, 2, Constant(100.0), requests=10), 2)
    merged = merge(parts, 2, time.time_ns(), time.monotonic_ns()).measured
    planned = [round((sample.planned - merged.began) / 1e6) for sample in merged.samples]
    assert planned == [*range(0, 100, 10)]
    assert [sample.worker for sample in merged.samples] == [0, 1] * 5


def test_a_task_that_learns_of_the_start_too_late_sends_nothing():
    with serving(good) as wire:
        shelf = shelf_of(plan(wire.url, 1))
        shelf.write(protocol.START, {"at": time.time_ns() - 1_000_000_000})
        with pytest.raises(UserError, match=r"was connected .* s after the start"):
            task(shelf, 0)
    assert wire.asked == []
    assert "after the start" in shelf.read(protocol.part(0))["failed"]


@pytest.mark.slow
def test_a_task_that_nobody_starts_gives_up():
    shelf = shelf_of(plan("http://127.0.0.1:1", 1, wait=0.05))
    with pytest.raises(UserError, match=r"waited 0\.05 s for the start, which never came"):
        task(shelf, 0)
    assert protocol.ready(0) in shelf.documents


@pytest.mark.parametrize("ahead", [500_000_000_000, -500_000_000_000])
def test_a_task_whose_clock_is_off_does_not_take_part(ahead):
    shelf = shelf_of(plan("http://127.0.0.1:1", 1), ahead=ahead)
    with pytest.raises(UserError, match=r"the clock of task 0 is at least .* ms off"):
        task(shelf, 0)


def test_a_server_that_takes_no_connection_is_reported_in_the_part():
    shelf = shelf_of(plan("http://127.0.0.1:1", 1))
    shelf.write(protocol.START, {"at": time.time_ns() + AHEAD})
    with pytest.raises(UserError, match="accepts no connection"):
        task(shelf, 0)
    assert "accepts no connection" in shelf.read(protocol.part(0))["failed"]


def test_an_image_of_another_checkout_and_a_run_that_is_over_are_refused():
    with pytest.raises(UserError, match="the image holds another version of bezel"):
        task(shelf_of(plan("http://127.0.0.1:1", 1, code="0" * 16)), 0)
    with pytest.raises(UserError, match="the run of this task is over"):
        task(Shelf(), 0)
