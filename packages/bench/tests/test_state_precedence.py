"""Precedence of a cell's findings: the gravest is its state, and each is in its reason."""

import itertools
from typing import Any

import pytest

from bezel_bench.result.cell_status import state_of
from bezel_bench.result.document import Check

# What a load can have, the gravest first: its arguments, its state, and a part of its reason.
ENDS = {
    "interrupted": ({"interrupted": True}, "failed", "interrupted after"),
    "silent": ({"silent_seconds": 30.0}, "failed", "the server hangs"),
    "nothing sent": ({"requests": 0}, "failed", "no request was sent"),
    "too long": (
        {"failures": {"http_4xx": 100}, "examples": {"http_4xx": "above the maximum context length"}},
        "infeasible",
        "refuses every request",
    ),
    "none succeeded": ({"failures": {"timeout": 100}}, "failed", "no request succeeded"),
}
FINDINGS = {
    "server's failures": ("failures_apart", "failed", "13 of 100 requests failed"),
    "wrong count": ("output_length", "failed", "usage counts 2 times"),
    "client's limit": ({"client_limits": ["it lagged"]}, "client_limited", "it lagged"),
    "busy machine": ({"busy": "other work kept the client waiting"}, "busy_machine", "other work kept"),
    "saturated": ({"saturated": "its queue grew"}, "saturated", "its queue grew"),
    "queueing": ({"queueing": "more than the platform admits"}, "queueing", "more than the platform admits"),
}
PAIRS = list(itertools.combinations(FINDINGS, 2))
# Lateness on a busy machine is no limit of the client; the busy machine's text then holds it.
EXCUSED = ("client's limit", "busy machine")
WITH_AN_END = list(itertools.product(ENDS, FINDINGS))
TWO_ENDS = list(itertools.combinations(ENDS, 2))


def state_with(*names: str) -> tuple[str, str]:
    arguments: dict[str, Any] = {
        "interrupted": False, "requests": 100, "failures": {}, "examples": {}, "client_limits": [], "queueing": ""
    }  # fmt: skip
    checks = []
    for name in names:
        what, _, text = ENDS.get(name) or FINDINGS[name]
        if isinstance(what, str):
            checks.append(Check(name=what, state="failed", text=text))
        else:
            arguments |= what
    return state_of(checks, **arguments)


def test_all_pairs_of_findings_are_tried() -> None:
    assert (len(PAIRS), len(WITH_AN_END), len(TWO_ENDS)) == (15, 30, 10)


@pytest.mark.parametrize("name", FINDINGS)
def test_one_finding_alone_gives_its_state(name) -> None:
    _, state, text = FINDINGS[name]
    actual, why = state_with(name)
    assert actual == state
    assert text in why
    assert state_with() == ("ok", "")


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_graver_finding_gives_the_state_and_both_are_told(first, second) -> None:
    state, why = state_with(second, first)
    expected = (second,) if (first, second) == EXCUSED else (first, second)
    assert state == FINDINGS[expected[0]][1]
    assert all(FINDINGS[name][2] in why for name in expected)


@pytest.mark.parametrize(("end", "finding"), WITH_AN_END)
def test_load_without_an_end_tells_wrong_counts_only(end, finding) -> None:
    """What is known of the client or of a queue describes a whole load; a wrong count stays wrong."""
    state, why = state_with(end, finding)
    assert state == ENDS[end][1]
    assert ENDS[end][2] in why
    assert (FINDINGS[finding][2] in why) == (finding == "wrong count")


@pytest.mark.parametrize(("first", "second"), TWO_ENDS)
def test_first_end_of_two_is_told(first, second) -> None:
    state, why = state_with(second, first)
    assert (state, ENDS[first][2] in why) == (ENDS[first][1], True)


def test_all_findings_together_are_told() -> None:
    state, why = state_with(*(name for name in FINDINGS if name != "client's limit"))
    assert state == "failed"
    assert all(text in why for name, (_, _, text) in FINDINGS.items() if name != "client's limit")


def test_clients_own_failures_do_not_excuse_a_wrong_count() -> None:
    failures = {"failures": {"client": 13}, "client_limits": ["it lagged"]}
    arguments: dict[str, Any] = {"interrupted": False, "requests": 100, "examples": {}, "queueing": "", **failures}
    apart = Check(name="failures_apart", state="failed", text="13 of 100 requests failed")
    wrong = Check(name="counters", state="failed", text="server and client disagree")
    assert state_of([apart], **arguments)[0] == "client_limited"
    state, why = state_of([apart, wrong], **arguments)
    assert state == "failed"
    assert "server and client disagree" in why
    assert "the client fell short, too: it lagged" in why
