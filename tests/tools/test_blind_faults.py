"""Judgement of blind faults: every kind is drawn or left out, a screen ends, a verdict is held to the callers."""

import pytest

from tools.measure.blind_faults import COLUMNS, ROWS, BlindFault, Trial, first_screen, names_cause, table

FAULT = BlindFault("x", "rate-limited", "requests", ("429", "free instance|busy"))


def test_every_kind_of_fault_is_drawn_or_left_out_with_a_reason() -> None:
    faults, left_out = table()
    assert len({fault.name for fault in faults}) == len(faults) >= 12
    assert not {fault.kind for fault in faults} & set(left_out)
    assert all(fault.words and fault.how in {"requests", "deploy", "loop", "nothing"} for fault in faults)


def test_a_long_line_takes_several_rows_of_the_screen() -> None:
    assert first_screen("\n".join(map(str, range(30)))).splitlines() == [str(number) for number in range(ROWS)]
    long = "x" * (COLUMNS * ROWS) + "429 busy"
    assert len(first_screen(long).splitlines()) == ROWS
    assert not names_cause(FAULT, first_screen(long))


def test_a_cause_is_named_by_all_of_its_patterns_across_the_end_of_a_row() -> None:
    assert names_cause(FAULT, first_screen("HTTP 429:\nno Free   instance"))
    assert names_cause(FAULT, first_screen(f"{'x' * (COLUMNS - 2)}429 busy"))
    assert not names_cause(FAULT, first_screen("HTTP 429"))
    assert not names_cause(FAULT, "")


@pytest.mark.parametrize(
    ("callers", "verdict", "is_true"),
    [
        (["200", "200"], "ready", True),
        (["200", "200"], "failed", False),
        (["429", "429"], "ready", False),
        (["429", "429"], "failing", True),
        (["200", "503"], "ready", False),
        (["200", "ReadError"], "degraded", True),
        (["200"], "degraded", True),
    ],
)
def test_a_verdict_is_held_to_what_callers_got(callers: list[str], verdict: str, is_true: bool) -> None:
    assert Trial(FAULT, callers=callers, verdict=verdict).is_status_true is is_true


def test_a_verdict_is_not_judged_where_no_log_shows_what_callers_got() -> None:
    unseen = BlindFault("x", "truncated-streams", "requests", ("stream",), unseen="cut on the way")
    assert Trial(unseen, callers=["incomplete stream"], verdict="ready").is_status_true is None
    assert Trial(FAULT, callers=["incomplete stream"], verdict="ready").is_status_true is False
