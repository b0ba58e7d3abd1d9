"""Counts in the texts of benchmarks: one thing is singular, and what is not known is no "None"."""

import re
from typing import Any

import pytest

from bench_support.rendered import text_of
from bench_support.results import manifest
from bezel_base.text.counting import format_count
from bezel_bench.commands.render.tables import grid_blocks, run_blocks, search_blocks
from bezel_bench.report.comparison import compare
from bezel_bench.report.markdown import as_markdown
from bezel_bench.report.page import as_page
from bezel_bench.report.report import report_of
from bezel_bench.result.cell_status import crowding_reason, queueing_reason, state_of
from bezel_bench.result.document import Cell, Result
from bezel_bench.result.records import Metric
from bezel_bench.sweep.grid import Bounds, Grid, refusal
from bezel_bench.validity import load_checks

UNITS = (
    "users requests responses cells rounds runs tokens prompts rows workers tasks instances answers failures entries"
)
WRONG = re.compile(rf"(?<![\d.,])\b1 ({'|'.join(UNITS.split())})\b(?!/)|\bNone\b")
# A sum of lengths, of which one may be 1: "128 + 1 tokens".
_SUM = re.compile(r"\d \+ 1 tokens")


def slips(text: str) -> list[str]:
    return [match[0] for match in WRONG.finditer(_SUM.sub("", text))]


def result(number: int | None, kind: Any = "run") -> Result:
    rate = Metric(value=4.0, unit="requests/s", low=3.0, high=5.0, n=9, confidence=0.95, how="t")
    metrics = {"requests_per_second": rate, "output_tokens_per_second": Metric(value=None, unit="tokens/s", why="none")}
    cell = Cell(
        id="a", context_tokens=number, users=number or None, output_tokens=number, pattern="closed", prompts="unique",
        state="failed", reason=queueing_reason(number or 0, instances=0, concurrency=1) or "x", requests=number or 0,
        failures={"timeout": number} if number else {}, seconds=2.0, metrics=metrics,
    )  # fmt: skip
    good = cell.model_copy(update={"id": "b", "state": "ok", "reason": ""})
    return Result(kind=kind, nature="measured", manifest=manifest("t"), cells=[cell, good])


@pytest.mark.parametrize("number", [0, 1, 2, None])
def test_rendered_result_names_counts_in_their_form(number: int | None) -> None:
    made = result(number)
    report = report_of([made])
    comparison = compare(made, made, 0.05)
    texts = {
        "terminal": text_of(run_blocks(made)),
        "search": text_of(search_blocks(made, ["requests_per_second"])),
        "markdown": as_markdown(report),
        "page": re.sub(r"<(script|style).*?</\1>", "", as_page(report), flags=re.DOTALL),
        "comparison": " ".join([*comparison.notes, *comparison.refusals, *(each.load for each in comparison.figures)]),
    }
    if number:
        texts["grid"] = text_of(grid_blocks(result(number, "sweep"), "requests_per_second"))
    assert {name: wrong for name, text in texts.items() if (wrong := slips(text))} == {}


def texts_of(number: int) -> dict[str, str]:
    grid = Grid((8,), (number or 1,), output_tokens=1, requests_per_user=1, seed=0)
    refused = refusal(grid, Bounds(capacity=0), (0, 0))
    ended: dict[str, Any] = {"failures": {}, "examples": {}, "client_limits": [], "queueing": ""}
    return {
        "queued": queueing_reason(number, instances=number, concurrency=0) if number else "",
        "crowded": crowding_reason(number),
        "interrupted": state_of([], interrupted=True, requests=number, **ended)[1],
        "silent": state_of([], interrupted=False, requests=number, silent_seconds=1.0, **ended)[1],
        "refused": refused.reason if refused else "",
        "failures": load_checks.failures_apart(number, {"timeout": number} if number else {}).text,
        "one of": load_checks.failures_apart(max(number, 1), {}).text,
    }


@pytest.mark.parametrize("number", [0, 1, 2])
def test_reasons_name_counts_in_their_form(number: int) -> None:
    assert {name: wrong for name, text in texts_of(number).items() if (wrong := slips(text))} == {}


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (0, "users", "0 users"), (1, "users", "1 user"), (2, "users", "2 users"), (1, "entries", "1 entry"),
        (1.5, "users", "1.5 users"), (1, "requests/s", "1 requests/s"), (1_234_567, "requests", "1234567 requests"),
        (1, "warm-up requests", "1 warm-up request"),
    ],
)  # fmt: skip
def test_count_has_its_form(number: float, unit: str, text: str) -> None:
    assert format_count(number, unit) == text


def test_scan_finds_what_it_looks_for() -> None:
    assert slips("1 users, 21 users, 1 requests, None tokens, 1.1 users") == ["1 users", "1 requests", "None"]
    assert slips("1 user, 11 users, 0.1 users, 128 + 1 tokens, 1 requests/s") == []
