"""The engine as processes: workers and their deaths, signals, what a start costs, a client that is starved."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bench_support.wire import Prompts, WireRequest, document, good, load, send, serving
from bezel_base.errors import UserError
from bezel_bench.cell.build_cell import client_figures, relative_rate
from bezel_bench.client.load_engine import run_load
from bezel_bench.load.plan import Body, Closed, Constant
from bezel_bench.result.cell_status import busy_machine, limits_of_client
from bezel_bench.result.columns import Columns

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
SENDER = """
import json, sys
sys.path[:0] = [{root!r}]
from bench_support.wire import Prompts, load
from bezel_bench.result.columns import Columns
from bezel_bench.client.load_engine import run_load
from bezel_bench.load.plan import Closed
measured = run_load(load({url!r}, None, Closed(4), seconds=30.0, workers={workers}), Prompts(), dict, lambda _: None)
print(json.dumps([measured.client.interrupted, [sample.failure for sample in measured.samples]]))
"""


class Deadly(Prompts):
    """Kills the worker that makes the 20th body."""

    def body(self, index: int, turn: int = 0) -> Body:
        if index == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().body(index, turn)


def test_workers_share_a_load_and_their_samples_are_one_run() -> None:
    with serving() as wire:
        measured = send(wire.url, 101, Closed(5), workers=2)
    assert [sample.index for sample in measured.samples] == [*range(101)]
    assert {(sample.index % 2, sample.worker, sample.user % 2) for sample in measured.samples} == {(0, 0, 0), (1, 1, 1)}
    assert not any(sample.failure for sample in measured.samples)
    assert (measured.client.workers, measured.client.connections, wire.connections) == (2, 5, 5)
    assert measured.client.cpu_seconds > 0
    # One clock: no worker began before the others were ready.
    assert min(sample.planned for sample in measured.samples) >= measured.began


def test_workers_send_an_open_loops_instants_between_them() -> None:
    with serving() as wire:
        measured = send(wire.url, 50, Constant(250), workers=2)
    assert [sample.planned - measured.began for sample in measured.samples] == [n * 4_000_000 for n in range(50)]


def test_no_worker_is_left_without_a_user() -> None:
    with serving() as wire:
        measured = send(wire.url, 9, Closed(1), workers=4)
    assert (measured.client.workers, [sample.index for sample in measured.samples]) == (1, [*range(9)])


def test_a_worker_that_dies_fails_the_run_with_its_reason() -> None:
    with serving() as wire, pytest.raises(UserError, match=r"(?s)worker 1 of 2.*died \(SIGKILL.*nothing was measured"):
        run_load(load(wire.url, 100, Closed(2), workers=2), Deadly(), dict, lambda _: None)


def test_a_worker_that_cannot_connect_says_what_a_single_sender_says() -> None:
    with pytest.raises(UserError, match="accepts no connection"):
        send("http://127.0.0.1:9", 2, Closed(2), workers=2)


def test_new_headers_reach_the_workers() -> None:
    seen = asyncio.Event()

    async def until_seen(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        if "number-2" in asked.head:
            seen.set()
        if seen.is_set():  # many failures end the load
            writer.write(document(b"{}", "500 Internal Server Error"))
        else:
            await asyncio.sleep(0.02)
            await good(asked, writer)

    with serving(until_seen) as wire:

        def token() -> dict[str, str]:
            return {"Authorization": "Bearer number-2" if wire.asked else "Bearer number-1"}

        send(wire.url, None, Closed(2), workers=2, seconds=60.0, headers=token)
    assert seen.is_set()
    assert "number-1" in wire.asked[0].head


@pytest.mark.wide_except("2-1", "15-2")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_what_there_is(number: signal.Signals, workers: int) -> None:
    hundred = threading.Event()

    async def last_is_late(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        if asked.number >= 100:
            hundred.set()
            await asyncio.sleep(90)
        await good(asked, writer)

    with serving(last_is_late) as wire:
        text = SENDER.format(root=str(ROOT), url=wire.url, workers=workers)
        with subprocess.Popen([sys.executable, "-c", text], cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert hundred.wait(60)
            process.send_signal(number)
            out, _ = process.communicate(timeout=60)
    interrupted, failures = json.loads(out)
    assert (process.returncode, interrupted) == (0, True)
    # What was on its way is the client's own doing, and no failure of the server's: the late one, and of each of the
    # other three users what was answered and not yet read.
    answered = failures.count("")
    assert 97 <= answered <= 100
    assert 1 <= failures.count("client") == len(failures) - answered <= 4


def test_ctrl_c_while_the_workers_begin_ends_a_run_and_no_worker() -> None:
    with serving() as wire:
        text = SENDER.format(root=str(ROOT), url=wire.url, workers=2).replace("Prompts()", "InterruptedPrompts()")
        text = f"import sys\nsys.path[:0] = [{str(ROOT)!r}]\nfrom bench_support.interrupted_start import *\n{text}"
        command = [sys.executable, "-c", text]
        run = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, process_group=0
        )
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout)[0] is True


def test_without_a_signal_no_run_is_interrupted() -> None:
    with serving() as wire:
        assert not send(wire.url, 3).client.interrupted


class Dear(Prompts):
    """Bodies that cost the client 30 ms each."""

    def body(self, index: int, turn: int = 0) -> Body:
        until = time.process_time() + 0.03
        while time.process_time() < until:
            pass
        return super().body(index, turn)


def limits(bodies: Prompts) -> tuple[list[str], str, float]:
    """The ways in which the client fell short, how other work disturbed it, and its loop's longest lag (ms)."""
    with serving() as wire:
        measured = send(wire.url, 40, Constant(100), bodies=bodies)
    columns = Columns.of(measured.samples)
    figures = client_figures(measured.client, columns)
    short = limits_of_client(figures, relative_rate(columns))
    return short, busy_machine(figures, short), measured.client.loop_lag_max_ms


def test_a_client_that_is_starved_says_so_by_itself() -> None:
    short, _, longest_lag = limits(Dear())
    text = " ".join(short)
    # Sending takes three times the time that the plan has: it shows in each figure that the wire does not.
    assert "of the planned rate" in text
    assert "ms late" in text
    # Not its p99: bodies that are late are made in one lag, and a server that answers late adds ticks without one.
    assert longest_lag > 20


def test_a_client_with_time_to_spare_says_nothing() -> None:
    # What other work of this machine does to it is reported as that.
    assert any(not short or busy for short, busy, _ in (limits(Prompts()) for _ in range(8)))


def test_no_request_waits_for_a_heavy_module() -> None:
    """What the import and the first request take in seconds is for `tools/bench/compare_clients.py` to measure."""
    code = (
        "import bezel_bench.client.load_engine, sys; print(*{'numpy', 'pydantic', 'asyncio', 'httpx'} & {*sys.modules})"
    )
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, timeout=60).split() == []
