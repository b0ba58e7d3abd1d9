"""A load to several addresses: each has its share and figures of its own, which together are those of the load."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench_support.cells import document, plan, record
from bench_support.command_line import parse
from bench_support.rendered import text_of
from bench_support.runs import closed_loop, failed_sample, good_sample
from bench_support.wire import send, serving
from bezel_base.errors import UserError
from bezel_bench.commands.measure.load_options import load_of
from bezel_bench.commands.render.tables import run_blocks
from bezel_bench.commands.run import warm_up_of
from bezel_bench.load.plan import Closed, Load, Target, from_json, to_json

URL, OTHER = "http://127.0.0.1:1", "http://127.0.0.1:2"


def load(*arguments: str) -> Load:
    return load_of(parse(["run", "--url", URL, *arguments]), Target(URL, "m"))


def test_weights_are_processes_and_a_load_is_read_back() -> None:
    sent = load("--also-url", f"{OTHER}/v1=2", "--users", "6", "--workers", "2")
    assert (sent.urls, sent.workers) == ((URL, OTHER, OTHER), 6)
    assert from_json(to_json(sent)) == sent
    assert load("--users", "6").urls == (URL,)
    assert (warm := warm_up_of(sent, 1, 0.0)) is not None
    assert warm.pattern == Closed(3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--also-url", f"{OTHER}=0"), "a weight of 1 to 64"),
        (("--also-url", f"{OTHER}=x"), "a weight of 1 to 64"),
        (("--also-url", "ftp://x"), "--also-url = ftp://x"),
        (("--also-url", f"{OTHER}=2", "--users", "2"), "give 3 or more"),
    ],
)
def test_addresses_that_cannot_be_sent_to_are_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load("--users", "9", *arguments)


def test_each_address_has_the_figures_of_its_processes() -> None:
    def make(index: int, sent: int, user: int):  # type: ignore[no-untyped-def]
        kind = {9: "timeout", 12: "cancelled", 15: "cancelled", 16: "cancelled"}.get(index)
        made = failed_sample(index, sent, kind, user=user) if kind else good_sample(index, sent, user=user)
        made.worker = user % 3
        return made

    planned = plan()
    several = replace(planned, load=replace(planned.load, pattern=Closed(6), more_urls=(OTHER, OTHER), workers=3))
    measured = record(closed_loop(6, 10, make), several)
    cell = measured.cell
    counts = [(part.url, part.requests, part.failed, part.cancelled) for part in cell.urls]
    assert counts == [(URL, 18, 2, 1), (OTHER, 42, 2, 2)]
    assert [part.share for part in cell.urls] == pytest.approx([1 / 3, 2 / 3])
    rates = [part.metrics["requests_per_second"].value or 0.0 for part in cell.urls]
    assert sum(rates) == pytest.approx(cell.value("requests_per_second"))
    text = text_of(run_blocks(document(measured)))
    assert "18 requests, 1 failed, 1 cancelled\n" in text
    assert "42 requests, 2 cancelled\n" in text
    assert cell.check("counters").state == "unknown"  # type: ignore[union-attr]
    alone = record(closed_loop(6, 10), replace(several, load=replace(several.load, more_urls=()))).cell
    assert (alone.urls, alone.check("counters").state) == ([], "passed")  # type: ignore[union-attr]


@pytest.mark.slow
def test_processes_send_to_their_addresses() -> None:
    with serving() as first, serving() as second:
        measured = send(first.url, 30, Closed(6), more_urls=(second.url, second.url), workers=3)
    assert [sum(sample.worker == number for sample in measured.samples) for number in range(3)] == [10, 10, 10]
    assert {sample.failure for sample in measured.samples} == {""}
    assert (len(first.asked), len(second.asked)) == (10, 20)
