"""Stalls: what the machine did, and never the thread's own work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench_support.runs import MS
from bezel_bench.client.stalls import Stalls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVERY = 10 * MS


class Kernel:
    """A kernel's file of a thread's time: on a CPU, and ready without one."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "schedstat"
        self.worked = self.waited = 0
        self.adds()

    def adds(self, worked: int = 0, waited: int = 0) -> None:
        self.worked, self.waited = self.worked + worked, self.waited + waited
        self.file.write_text(f"{self.worked} {self.waited} 7\n")


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


@pytest.fixture
def stalls(kernel: Kernel) -> Iterator[Stalls]:
    reader = Stalls(EVERY, kernel.file)
    yield reader
    reader.close()


@pytest.mark.parametrize(
    ("worked", "waited", "late", "stall"),
    [
        (0, 0, 0, 0.0),
        (9, 0, 8, 0.0),
        (12, 0, 12, 0.0),
        (1, 4, 4, 4.0),
        (1, 4, 0, 4.0),
        (2, 0, 9, 7.0),
        (5, 3, 7, 3.0),
    ],
)
def test_a_stall_is_the_wait_or_what_own_work_does_not_explain(
    kernel: Kernel, stalls: Stalls, worked: int, waited: int, late: int, stall: float
) -> None:
    kernel.adds(worked * MS, waited * MS)
    stalls.tick(late * MS)
    assert stalls.p99_ms == stall


def test_each_observation_counts_from_the_last_one(kernel: Kernel, stalls: Stalls) -> None:
    kernel.adds(waited=5 * MS)
    stalls.tick(0)
    stalls.tick(0)
    assert stalls.p99_ms == 5.0
    stalls.clear()
    assert stalls.p99_ms is None
    stalls.tick(0)
    assert stalls.p99_ms == 0.0


def test_a_long_stall_counts_as_often_as_ticks_were_missed(kernel: Kernel, stalls: Stalls) -> None:
    for _ in range(197):
        stalls.tick(0)
    kernel.adds(waited=25 * MS)
    stalls.tick(25 * MS)
    assert stalls.p99_ms == 25.0, "3 of 200"


def test_one_short_stall_of_two_hundred_ticks_is_not_the_99th_percentile(kernel: Kernel, stalls: Stalls) -> None:
    for _ in range(199):
        stalls.tick(0)
    kernel.adds(waited=9 * MS)
    stalls.tick(9 * MS)
    assert stalls.p99_ms == 0.0


@pytest.mark.parametrize("text", [None, "", "12", "x y z"])
def test_a_kernel_that_does_not_tell_leaves_stalls_unknown(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "schedstat"
    if text is not None:
        file.write_text(text)
    stalls = Stalls(EVERY, file)
    stalls.tick(50 * MS)
    assert stalls.p99_ms is None
    stalls.close()
