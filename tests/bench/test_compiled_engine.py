"""The compiled engine measures what the pure one does: each field of each sample, however the bytes are cut."""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_support.recorded import recorded_stream
from bench_support.wire import HEAD, chunk
from bezel_bench.result.sample import NO_TOKEN, TRUNCATED
from tests.support.bench.engines import BUILD_SECONDS, Engine, compiled_folder, engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.wide, pytest.mark.timeout(2 * BUILD_SECONDS)]

RECORDED = [line for _, line in recorded_stream("chat-stream-usage.txt")]
EVENTS = [b"data: " + line.partition(b"data: ")[2].strip() + b"\n\n" for line in RECORDED if line.startswith(b"data: ")]
ROLE, TEXTS, LAST = EVENTS[:1], EVENTS[1:-2], EVENTS[-2:]
FAULTS = [b"data: {\n\n", b'data: {"error":{"message":"died"}}\n\n', b": ping\n\n", b"data: [DONE]\n\n", b"\n", b"\x00"]
END = b"0\r\n\r\n"


@pytest.fixture(scope="module")
def folder() -> Path:
    return compiled_folder()


@pytest.fixture(scope="module")
def both(folder: Path) -> Iterator[tuple[Engine, Engine]]:
    with engine() as pure, engine(folder) as compiled:
        assert (pure.name, compiled.name) == ("", "compiled")
        yield pure, compiled


@st.composite
def bodies(draw: st.DrawFn) -> list[bytes]:
    """Events of a recorded stream, more or fewer texts, with a fault or none."""
    events = [*ROLE, *(draw(st.sampled_from(TEXTS)) for _ in range(draw(st.integers(0, 12)))), *LAST]
    if fault := draw(st.sampled_from([b"", *FAULTS])):
        events.insert(draw(st.integers(0, len(events))), fault)
    return events[: draw(st.integers(1, len(events)) | st.just(len(events)))]


def as_text(pieces: list[bytes]) -> list[str]:
    return [piece.decode("latin-1") for piece in pieces]


def cut(body: bytes, places: list[int]) -> list[str]:
    """The body as pieces, none empty."""
    edges = sorted({0, len(body), *(place % len(body) for place in places)})
    return as_text([body[begin:end] for begin, end in itertools.pairwise(edges)])


PLACES = st.lists(st.integers(0, 1 << 16), max_size=8)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(events=bodies(), places=PLACES, whole=st.booleans(), gap=st.integers(1, 9))
def test_answers_with_given_instants_have_equal_samples(
    both: tuple[Engine, Engine], events: list[bytes], places: list[int], whole: bool, gap: int
) -> None:
    pieces = as_text(events) if whole else cut(b"".join(events), places)
    answer = {"pieces": pieces, "at": [(number + 1) * gap for number in range(len(pieces))]}
    pure, compiled = (each.read(answer) for each in both)
    assert pure == compiled


@settings(max_examples=100, deadline=None, derandomize=True)
@given(events=bodies(), places=PLACES, framed=st.booleans())
def test_answers_over_a_socket_have_equal_samples(
    both: tuple[Engine, Engine], events: list[bytes], places: list[int], framed: bool
) -> None:
    pieces = [HEAD, *map(chunk, events), END]
    answer = {"pieces": as_text(pieces) if framed else cut(b"".join(pieces), places)}
    pure, compiled = (each.read(answer) for each in both)
    assert pure == compiled


def test_recorded_answer_is_read_whole_by_both_and_a_cut_one_is_not(both: tuple[Engine, Engine]) -> None:
    pieces = as_text([HEAD, *map(chunk, EVENTS), END])
    samples: list[tuple[Any, Any]] = []
    for each in both:
        whole, part = (each.read({"pieces": some})[0][0] for some in (pieces, pieces[:4]))
        assert (whole["failure"], whole["output_tokens"], len(whole["chunks"])) == ("", 6, 6)
        assert part["failure"] in {TRUNCATED, NO_TOKEN}
        samples.append((whole, part))
    assert samples[0] == samples[1]


def test_build_of_another_source_is_not_used(folder: Path, tmp_path: Path) -> None:
    stale = tmp_path / "stale"
    shutil.copytree(folder, stale)
    init = stale / "bezel_bench_compiled" / "__init__.py"
    init.write_text(init.read_text().replace('SOURCE = "', 'SOURCE = "0'))
    with engine(stale) as pure:
        assert pure.name == "pure: bezel-bench-compiled is of another source"
