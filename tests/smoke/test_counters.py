"""What a server says of itself: counters summed without their dates, counts of an answer that can be true."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.diagnosis.client import counters, usage_error
from tests.support.smoke.fake_service import FIXTURES


@pytest.mark.parametrize(("name", "sums"), [("metrics-ngram.txt", (762, 47)), ("metrics-mtp.txt", (5415, 0))])
def test_recorded_counters_are_summed_without_their_dates(name: str, sums: tuple[int, int]) -> None:
    family_sums = counters((FIXTURES / name).read_text(), "vllm:spec_decode_")
    drafted, accepted = "vllm:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_accepted_tokens_total"
    assert (family_sums[drafted], family_sums[accepted]) == sums
    assert all(value < 1e6 for value in family_sums.values())
    assert family_sums["vllm:spec_decode_num_accepted_tokens_per_pos_total"] == sums[1]


def test_a_label_may_hold_anything_and_no_drafts_mean_no_counters() -> None:
    """A label may hold anything and a server without drafts has no counters."""
    text = (
        '# HELP a_total x\na_total{m="b } 7 {",n="1"} 3.0\na_total{n="2"} 4 1795219792\n'
        'a_created{n="2"} 9e9\nbroken\n\n'
    )
    assert counters(text, "a") == {"a_total": 7.0}
    assert counters((FIXTURES / "metrics.txt").read_text(), "vllm:spec_decode_") == {}


@pytest.mark.slow
@given(st.integers(1, 10**6), st.integers(1, 64))
def test_true_counts_have_no_fault(prompt_tokens: int, output: int) -> None:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": output, "total_tokens": prompt_tokens + output}
    assert usage_error(usage, max_tokens=64) is None
    assert usage_error(usage | {"completion_tokens": 65}, max_tokens=64)
