"""Measurements outlast a kill: each request that has ended is in a file, whole, and nothing else is."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from array import array
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from bench_support.runs import failed_sample, good_sample
from bench_support.wire import TOKEN, Prompts, good, load, serving
from bezel_bench.client.load_engine import run_load
from bezel_bench.client.response_buffer import Backlog, ResponseBuffer
from bezel_bench.load.plan import Closed
from bezel_bench.result.sample import Sample
from bezel_bench.result.spill import Spill, line_of, read_spilled, sample_of

if TYPE_CHECKING:
    import asyncio

    from bench_support.wire import WireRequest

ROOT = Path(__file__).parents[1]
SENDER = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from bench_support.wire import Prompts, load
from bezel_bench.client.load_engine import run_load
from bezel_bench.load.plan import Closed
if __name__ == "__main__":
    wanted = load({url!r}, 100_000, Closed(4), workers={workers}, deadline_seconds=60)
    run_load(wanted, Prompts(), dict, lambda _: None, Path({spill!r}))
"""


def test_what_is_kept_is_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "spill"
    samples = [
        good_sample(0, 5_000),
        failed_sample(1, 6_000, "http_5xx", detail="no instance"),
        good_sample(2, 7_000, tokens=1),
    ]
    spill = Spill(path)
    spill.begin(4_000)
    for sample in samples:
        spill.add(sample)
    spill.close()
    kept = read_spilled([path])
    assert kept is not None
    assert [asdict(one) for one in kept.samples] == [asdict(one) for one in samples]
    assert (kept.began, kept.ended, kept.client.interrupted) == (4_000, max(one.done for one in samples), True)


def test_each_field_is_made_and_kept_under_its_own_name() -> None:
    values: dict[str, Any] = {field.name: number for number, field in enumerate(fields(Sample))}
    values |= {"failure": "reset", "detail": "broken", "chunks": array("q", [31, 32])}
    sample = Sample(**values)
    assert {name: getattr(sample, name) for name in values} == values
    assert sample_of(orjson.loads(line_of(sample))) == sample
    assert sample_of(orjson.loads(line_of(replace(sample, last=sample.done, done=sample.last)))) != sample


def test_a_line_that_a_kill_tore_is_left_out_and_no_line_is_no_load(tmp_path: Path) -> None:
    path = tmp_path / "spill"
    spill = Spill(path)
    spill.begin(4_000)
    assert read_spilled([path]) is None
    spill.add(good_sample(0, 5_000))
    spill.close()
    path.write_bytes(path.read_bytes() + b"[1, 2, ")
    kept = read_spilled([path])
    assert kept is not None
    assert len(kept.samples) == 1


def test_a_run_keeps_each_request_and_no_secret_of_it(tmp_path: Path) -> None:
    with serving() as wire:
        wanted = load(wire.url, 40, Closed(4))
        headers = {"Authorization": "Bearer planted-secret"}
        measured = run_load(wanted, Prompts(), lambda: headers, lambda _: None, tmp_path / "spill")
    kept = read_spilled([tmp_path / "spill"])
    assert kept is not None
    whole = {one.index: asdict(one) for one in measured.samples}
    assert all(asdict(one) == whole[one.index] for one in kept.samples)
    assert b"planted-secret" not in (tmp_path / "spill").read_bytes()


@pytest.mark.parametrize("is_read_early", [False, True])
def test_a_response_that_its_user_reads_early_is_kept_once(is_read_early: bool) -> None:
    kept: list[Sample] = []
    backlog = Backlog(kept.append)
    answer = ResponseBuffer(Sample(0, status=200), b"")
    answer.keep(7, TOKEN)
    backlog.add(answer)
    answer.at = 8
    if is_read_early:
        answer.read()
    backlog.add(answer)
    backlog.read_all()
    assert [(sample.index, sample.done) for sample in kept] == [(0, 8)]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_after_a_kill_what_was_answered_is_there(tmp_path: Path, workers: int) -> None:
    enough = threading.Event()

    def look() -> None:
        files = sorted(tmp_path.glob("spill*"))
        if len(files) == workers and all(file.stat().st_size > 1_000 for file in files):
            enough.set()

    async def answer_and_look(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        await good(asked, writer)
        look()

    spill = str(tmp_path / "spill")
    with serving(answer_and_look) as wire:
        text = SENDER.format(root=str(ROOT), url=wire.url, workers=workers, spill=spill)
        script = tmp_path / "send.py"
        script.write_text(text)
        with subprocess.Popen(
            [sys.executable, str(script)], cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
        ) as process:
            assert enough.wait(60)
            process.send_signal(signal.SIGKILL)
            assert process.stdout is not None
            assert process.stdout.read() == b"", "the workers have ended, too"
        asked = len(wire.asked)
    kept = read_spilled(sorted(tmp_path.glob("spill*")))
    assert kept is not None
    assert 0 < len(kept.samples) <= asked
    assert {one.failure for one in kept.samples} == {""}
