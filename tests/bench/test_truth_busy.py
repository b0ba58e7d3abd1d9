"""Recorded loads beside busy loops: a load that is `ok` has figures within the bounds that the word stands for."""

import copy
import json
from typing import Any

import pytest

from tools.bench.truth.busy import LOADS, LOOPS, PRIORITIES, RESULTS, broken_rows, row
from tools.bench.truth.compare import RATE_WITHIN, TTFT_WITHIN_MS, UNJUDGED, Compared

TABLE: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))


def test_every_ok_load_beside_busy_loops_is_within_its_bounds() -> None:
    assert TABLE["bounds"] == {"rate": RATE_WITHIN, "ttft_p99_ms": TTFT_WITHIN_MS}
    assert broken_rows(TABLE) == []


def test_every_other_load_says_that_its_figures_may_be_wrong() -> None:
    others = [each for each in TABLE["rows"] if each["state"] != "ok"]
    assert {each["state"] for each in others} <= set(UNJUDGED)
    assert all(each["faults"] == [] for each in others), "counts are right in every state"


def test_table_has_each_load_beside_no_loop_two_and_four() -> None:
    tried = {(each["load"], each["busy_loops"], each["priority"]) for each in TABLE["rows"]}
    assert tried == {(load.name, loops, name) for load in LOADS for loops in LOOPS for name in PRIORITIES}
    assert {each["busy_loops"] for each in TABLE["rows"] if each["state"] == "ok"} == set(LOOPS)
    assert all(each["counted"] >= 100 for each in TABLE["rows"]), "a p99 needs a hundred"


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("ttft_p99_error_ms", 1.2),
        ("ttft_p99_error_ms", -1.2),
        ("ttft_p99_error_ms", None),
        ("rate_error", 0.011),
        ("tokens_error", -0.02),
        ("faults", ["199 requests sent, 200 arrived"]),
    ],
)
def test_an_ok_load_out_of_bounds_is_named_and_another_is_not(figure: str, value: Any) -> None:
    changed = copy.deepcopy(TABLE)
    one = next(each for each in changed["rows"] if each["state"] == "ok" and each["busy_loops"] == 4)
    one[figure] = value
    assert any(f"{one['load']}, 4 busy loops, real-time priority" in text for text in broken_rows(changed))
    one["state"] = "busy_machine"
    assert broken_rows(changed) == []


def test_row_of_a_load_names_what_is_wrong_only_where_it_is_ok() -> None:
    late = Compared(200, 184, "ok", (), 0.0, 0.0, 0.1, 1.28, 1.3, 0.0)
    assert row(LOADS[0], 4, "ordinary", late)["faults"] == ["TTFT p99 is +1.28 ms off, more than 1 ms"]
    compared = Compared(200, 184, "busy_machine", (), 0.0, 0.0, 0.1, 1.28, 1.3, 0.0)
    assert row(LOADS[0], 4, "ordinary", compared)["faults"] == []
    lost = Compared(200, 184, "busy_machine", ("199 requests sent, 200 arrived",), 0.0, 0.0, 0.1, 1.28, 1.3, 0.0)
    assert row(LOADS[0], 4, "ordinary", lost)["faults"] == ["199 requests sent, 200 arrived"]
