"""`bezel-bench run` that is killed, interrupted or loses its server: what it measured is kept, and it continues."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bench_support.command_line import parse
from bench_support.http_server import Answer, Call, Server, act_once, serving
from bench_support.recorded import recorded_body, recorded_stream
from bezel_base import ending_signals
from bezel_base.command_line.exits import READER_GONE
from bezel_base.errors import UserError
from bezel_bench.client.load_engine import run_load
from bezel_bench.commands.main import main
from bezel_bench.commands.run import run
from bezel_bench.commands.targets import UrlTargets
from bezel_bench.result.document import load as read_result
from bezel_bench.result.sample_file import read_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bezel_bench.load.plan import Bodies, Load, TokenSource
    from bezel_bench.result.document import Result
    from bezel_bench.result.sample import Measured

STREAM = [line for _, line in recorded_stream("chat-stream-usage.txt")]
ASKED = "/v1/chat/completions"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that answers with a recorded stream of 6 tokens."""
    monkeypatch.delenv("BEZEL_SIMULATED", raising=False)

    def answer(call: Call) -> Answer | None:
        if call.path == "/v1/models":
            return Answer(json=json.loads(recorded_body("models.txt")))
        return Answer(chunks=[*STREAM]) if call.path == ASKED else None

    with serving() as started:
        started.routes[:] = [answer]
        yield started


def command(server: Server, out: Path, *more: str) -> list[str]:
    return ["run", "--url", server.url, "--public", "--output-tokens", "6", "--out", str(out), *more]


def prompts(server: Server) -> list[str]:
    return [call.json["messages"][0]["content"] for call in server.calls if call.path == ASKED]


class Quiet:
    """A way to send whose machine has nothing else to do, however busy this one is."""

    def send(self, load: Load, bodies: Bodies, headers: TokenSource, show: Callable[[str], None]) -> Measured:
        measured = run_load(load, bodies, headers, show)
        for sample in measured.samples:
            # Without the kernel's stamp, as on other systems, no part of a TTFT is the client's.
            sample.planned, sample.departed = sample.begun, 0
        health = {"stall_p99_ms": 0.0, "loop_lag_p99_ms": 0.0, "busiest_cpu_share": 0.1}
        return replace(measured, client=replace(measured.client, **health))

    def describe(self, result: Result) -> Result:
        return result


class Busy(Quiet):
    """A way to send on a machine that is busy during some of the loads, counted from 1."""

    def __init__(self, *loads: int) -> None:
        self.loads, self.sent = loads, 0

    def send(self, load: Load, bodies: Bodies, headers: TokenSource, show: Callable[[str], None]) -> Measured:
        measured = super().send(load, bodies, headers, show)
        self.sent += 1
        stall = 30.0 if self.sent in self.loads else 0.0
        return replace(measured, client=replace(measured.client, stall_p99_ms=stall))


class Loses(Quiet):
    """A way to send that loses the server after so many loads."""

    def __init__(self, loads: int) -> None:
        self.loads = loads

    def send(self, load: Load, bodies: Bodies, headers: TokenSource, show: Callable[[str], None]) -> Measured:
        self.loads -= 1
        if self.loads < 0:
            raise UserError("worker 1 of 2 died.")
        return super().send(load, bodies, headers, show)


def sent_by(sender: Quiet, arguments: list[str]) -> int:
    """The exit code of a command whose load this sends."""
    return run(UrlTargets(), parse(arguments), sender)


class Stops(Quiet):
    """A way to send whose second load is interrupted before it is sent."""

    sent = 0

    def send(self, load: Load, bodies: Bodies, headers: TokenSource, show: Callable[[str], None]) -> Measured:
        self.sent += 1
        if self.sent == 2:
            raise KeyboardInterrupt
        return super().send(load, bodies, headers, show)


@pytest.mark.slow
def test_an_interrupt_before_a_repeat_keeps_the_repeats_before_it(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    arguments = command(server, out, "--requests", "4", "--repeats", "3")
    assert sent_by(Stops(), arguments) == ending_signals.INTERRUPTED
    first = read_result(out)
    assert [cell.id for cell in first.cells] == ["run-r0"]
    assert "It was interrupted." in first.notes
    assert sent_by(Quiet(), arguments) == 0
    assert read_result(out).cells[0] == first.cells[0]


@pytest.mark.slow
def test_an_interrupt_of_the_warm_up_ends_the_command_before_its_load(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    arguments = command(server, out, "--requests", "8", "--warmup", "30")
    act_once(server, ASKED, 5, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt):
        sent_by(Quiet(), arguments)
    assert len(prompts(server)) <= 8
    assert not [*tmp_path.iterdir()], "nothing was measured, so nothing is left to continue from"
    assert sent_by(Quiet(), arguments) == 0
    assert read_result(out).cells[0].requests == 8


@pytest.mark.slow
def test_interrupted_run_keeps_whole_repeats_and_measures_the_others(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.json"
    arguments = command(server, out, "--requests", "8", "--repeats", "3")
    act_once(server, ASKED, 20, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert sent_by(Quiet(), arguments) == ending_signals.INTERRUPTED
    shown = capsys.readouterr()
    journal = out.with_suffix(".journal")
    assert f"the measured cells are stored in {journal}; this command continues from there:" in shown.err
    first = read_result(out)
    assert [cell.requests for cell in first.cells[:2]] == [8, 8]
    assert "interrupted" in first.cells[2].reason
    sent = prompts(server)
    assert sent_by(Quiet(), arguments) == 0
    whole = read_result(out)
    assert whole.cells[:2] == first.cells[:2], "what was whole is not measured again"
    assert [cell.id for cell in whole.cells] == ["run-r0", "run-r1", "run-r2"]
    assert not any("interrupted" in cell.reason for cell in whole.cells)
    assert not set(prompts(server)[len(sent) :]) & set(sent), "no cache holds what is asked again"
    assert whole.samples is not None
    assert set(read_samples(out.with_name(whole.samples.file))) == {"run-r0", "run-r1", "run-r2"}
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "run.samples.npz"}, "nothing is left beside"
    with pytest.raises(UserError, match="--force"):
        sent_by(Quiet(), arguments)
    assert read_result(out) == whole, "a result is never replaced unasked"
    sent_by(Quiet(), [*arguments, "--force"])
    assert read_result(out).cells[0] != whole.cells[0], "a run that came to its end is measured anew"


@pytest.mark.slow
def test_a_complete_run_whose_reader_is_gone_is_not_continued_by_the_next(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run.json"
    arguments = command(server, out, "--requests", "2")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as closed, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", closed)
        assert main(arguments) == READER_GONE
    first = read_result(out)
    beside = set() if first.cells[0].state == "ok" else {"run.journal", "run.cells"}
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "run.samples.npz"} | beside
    main([*arguments, "--force"])
    assert read_result(out).cells != first.cells


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    ("action", "more", "requests"),
    [
        ("sweep", ["--contexts", "64", "--users", "1,2,4", "--full"], 20),
        ("goodput", ["--users", "1:4", "--slo", "ttft_p50=60000"], 45),
        ("ab", ["--rounds", "3", "--requests", "4", "--users", "2", "--output-tokens", "128"], 12),
    ],
)
def test_measurement_that_a_signal_ends_writes_what_it_has_and_names_it(
    server: Server,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    action: str,
    more: list[str],
    requests: int,
    number: int,
    code: int,
) -> None:
    out = tmp_path / "r.json"
    act_once(server, ASKED, requests, lambda: os.kill(os.getpid(), number))
    ways = (
        ["--arm", f"a={server.url}", "--arm", f"b={server.url.replace('127.0.0.1', 'localhost')}"]
        if action == "ab"
        else ["--url", server.url]
    )
    arguments = [*ways, "--public", "--output-tokens", "6", *more, "--out", str(out)]
    assert main([action, *arguments]) == code
    assert f"stored in {out.with_suffix('.journal')}; this command continues from there:" in capsys.readouterr().err
    assert any(cell.requests for cell in read_result(out).cells)


@pytest.mark.slow
def test_a_run_that_loses_its_server_writes_the_repeats_before_and_goes_on(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.json"
    arguments = command(server, out, "--requests", "4", "--repeats", "3")
    with pytest.raises(UserError, match="died"):
        sent_by(Loses(0), arguments)
    assert not [*tmp_path.iterdir()]
    assert sent_by(Loses(2), arguments) == 1
    shown = capsys.readouterr()
    assert "run-r2 could not be measured: worker 1 of 2 died" in shown.out
    assert "this command continues from there" in shown.err
    first = read_result(out).cells
    assert [cell.id for cell in first] == ["run-r0", "run-r1"]
    main(arguments)
    whole = read_result(out).cells
    assert whole[:2] == first
    assert len(whole) == 3


@pytest.mark.slow
@pytest.mark.parametrize(("loads", "code"), [(1, 1), (2, 0)])
def test_run_that_loses_its_server_is_no_success_after_good_repeats(server: Server, loads: int, code: int) -> None:
    arguments = ["run", "--url", server.url, "--public", "--output-tokens", "6", "--requests", "4"]
    assert sent_by(Loses(loads), [*arguments, "--repeats", "2"]) == code


@pytest.mark.slow
def test_a_repeat_on_a_busy_machine_is_measured_anew_by_the_same_command(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.json"
    arguments = command(server, out, "--requests", "4", "--repeats", "3")
    assert sent_by(Busy(2), arguments) == 1
    assert "this command continues from there" in capsys.readouterr().err
    first = read_result(out).cells
    assert [cell.state for cell in first] == ["ok", "busy_machine", "ok"]
    assert "measured on a busy machine: other work kept the client from a CPU for 30.0 ms" in first[1].reason
    sent = prompts(server)
    assert sent_by(Busy(), arguments) == 0
    whole = read_result(out).cells
    assert (whole[0], whole[1].state, whole[2]) == (first[0], "ok", first[2])
    again = prompts(server)[len(sent) :]
    assert len(again) == 4
    assert not set(again) & set(sent), "no cache holds what is asked again"
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "run.samples.npz"}


@pytest.mark.slow
def test_force_discards_an_unfinished_run_with_other_settings(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.json"
    assert sent_by(Busy(2), command(server, out, "--requests", "4", "--repeats", "2")) == 1
    other = command(server, out, "--requests", "3", "--repeats", "2")
    with pytest.raises(UserError, match="add --force") as refused:
        sent_by(Quiet(), other)
    (problem,) = refused.value.problems
    assert str(problem).startswith(f"{out.with_suffix('.journal')}: load.stop.requests = 3"), "only what differs"
    capsys.readouterr()
    assert sent_by(Quiet(), [*other, "--force"]) == 0
    assert "discarded the cells of an unfinished command" in capsys.readouterr().err
    assert [cell.requests for cell in read_result(out).cells] == [3, 3]
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "run.samples.npz"}


@pytest.mark.slow
def test_force_continues_an_unfinished_run_with_the_same_settings(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    arguments = command(server, out, "--requests", "4", "--repeats", "2", "--force")
    assert sent_by(Busy(2), arguments) == 1
    first = read_result(out).cells
    assert sent_by(Quiet(), arguments) == 0
    assert read_result(out).cells[0] == first[0]


@pytest.mark.slow
def test_a_run_that_measured_nothing_leaves_nothing(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    arguments = command(server, out)
    arguments[arguments.index(server.url)] = "http://127.0.0.1:9"
    assert main([*arguments, "--model", "m"]) == 1
    assert not [*tmp_path.iterdir()]
    assert main(command(server, out, "--requests", "2")) in (0, 1)
    assert out.exists()


@pytest.mark.slow
def test_samples_of_a_killed_run_are_kept_and_its_load_measured_anew(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.json"
    spill = tmp_path / "run.cells" / "run.spill"
    arguments = command(server, out, "--seconds", "600")
    script = "import sys; from bezel_bench.commands.main import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 60
        while not (spill.exists() and spill.read_bytes().count(b"\n") > 10):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert not out.exists()
    act_once(server, ASKED, 8, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert main(arguments) == 128 + signal.SIGTERM
    kept = tmp_path / "run.killed-1.json"
    assert f"stored in {kept}; measuring again" in capsys.readouterr().err
    (cell,) = read_result(kept).cells
    assert cell.state == "failed"
    assert cell.reason.startswith(f"the run was killed after {cell.requests} responses")
    assert cell.requests >= 10
    assert cell.value("ttft_p50") is not None
    samples = read_samples(kept.with_name("run.killed-1.samples.npz"))
    assert len(samples[cell.id][0]) == cell.requests
    assert "interrupted" in read_result(out).cells[0].reason
