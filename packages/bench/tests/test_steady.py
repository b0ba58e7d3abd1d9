"""The part of a load that counts: on runs whose answer is known."""

from bench_support.runs import BEGAN, MS, SECOND, closed_loop, columns, failed_sample, good_sample, measurement, noise
from bezel_bench.metrics.steady import Steady, steady_window
from bezel_bench.result.sample import Measured


def window(run: Measured, users: int, *, changing: bool = False) -> Steady:
    return steady_window(columns(run), run.began, run.ended, users=users, changing=changing)


def test_users_in_step_lose_their_first_and_last_round():
    """4 users, 5 rounds of 201 ms: what counts is rounds 2 to 4."""
    steady = window(closed_loop(4, 5), 4)
    assert steady.cut
    assert (steady.begins - BEGAN, steady.ends - BEGAN) == (201 * MS, 4 * 201 * MS)


def test_users_who_come_one_by_one_are_waited_for():
    steady = window(closed_loop(4, 10, stagger=150 * MS), 4)
    assert steady.begins >= BEGAN + 3 * 150 * MS + 201 * MS


def test_a_slow_start_is_cut_where_it_ends():
    """The first 60 of 400 answers take five times as long."""
    dice = noise(1)

    def make(index, sent, user):
        slow = 5 if index < 60 else 1
        return good_sample(index, sent, user=user, ttft=slow * 100 * MS + dice.randrange(10 * MS))

    run = closed_loop(4, 100, make)
    steady = window(run, 4)
    last_slow = max(one.done for one in run.samples if one.index < 60)
    assert "MSER-5" in steady.rule
    assert last_slow - SECOND // 2 <= steady.begins <= last_slow + 3 * SECOND


def test_an_even_run_loses_little_more_than_its_ends():
    dice = noise(2)
    run = closed_loop(
        4, 100, lambda index, sent, user: good_sample(index, sent, user=user, ttft=dice.randrange(50, 150) * MS)
    )
    steady = window(run, 4)
    assert steady.counts(columns(run)).sum() >= 390


def test_what_is_too_short_counts_whole_and_says_so():
    run = closed_loop(8, 2)
    steady = window(run, 8)
    assert (steady.begins, steady.ends, steady.cut) == (run.began, run.ended, False)
    assert "too few responses to cut the ends off (16 of 8 users)" in steady.rule
    assert steady.counts(columns(run)).all()


def test_a_load_that_changes_counts_whole():
    steady = window(closed_loop(2, 50), 2, changing=True)
    assert (steady.cut, steady.rule) == (False, "nothing is cut: the load changes on purpose")


def test_a_run_without_an_answer_has_no_steady_state():
    steady = window(measurement([failed_sample(0, BEGAN, "timeout")]), 1)
    assert "no request succeeded" in steady.rule


def test_an_open_loop_begins_when_the_first_ones_are_answered():
    """10 a second, each of 201 ms: at the first answer two are under way, and one more is sent at that instant."""
    run = measurement([good_sample(index, BEGAN + index * 100 * MS) for index in range(100)])
    steady = window(run, 0)
    assert BEGAN + 201 * MS < steady.begins <= BEGAN + 500 * MS
    assert steady.ends == BEGAN + 9_900 * MS
