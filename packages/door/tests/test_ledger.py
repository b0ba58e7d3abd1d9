"""Limits of keys: what is admitted by one instance, and by how much several pass a limit together."""

from datetime import UTC, datetime

import pytest

from bezel_door.accounts.ledger import Charge, Ledger, LimitPassed
from bezel_door.calls.token_use import Tokens
from bezel_door.key_file import Key
from bezel_door.usage_file import KeyUsage, MinuteUse

ID = "abcdefgh"
NOW = datetime(2026, 11, 29, 8, 15, 20, tzinfo=UTC).timestamp()
DAY = int(NOW // 86400)


def key(**limits):
    return Key("0" * 64, "", datetime(2026, 11, 29, tzinfo=UTC), **limits)


def use(ledger, limits, tokens, now=NOW, reserved=0):
    """One whole request; whether it was admitted."""
    charge = ledger.begin(ID, key(**limits), reserved, now)
    if isinstance(charge, Charge):
        ledger.end(charge, Tokens(tokens), now, has_failed=False)
    return isinstance(charge, Charge)


@pytest.mark.parametrize(
    ("limits", "passed"),
    [
        ({"requests_per_minute": 2}, LimitPassed("requests_per_minute", 2, 40)),
        ({"tokens_per_minute": 20}, LimitPassed("tokens_per_minute", 20, 40)),
        ({"tokens_per_day": 20}, LimitPassed("tokens_per_day", 20, 56680)),
        ({}, None),
    ],
)
def test_a_limit_holds_to_the_end_of_its_minute_or_day(limits, passed):
    ledger = Ledger()
    assert [use(ledger, limits, 10) for _ in range(2)] == [True, True]
    third = ledger.begin(ID, key(**limits), 0, NOW)
    assert third == passed or (passed is None and isinstance(third, Charge))
    if passed:
        assert not use(ledger, limits, 10, NOW + passed.retry_after - 1)
        assert use(ledger, limits, 10, NOW + passed.retry_after)


def test_requests_under_way_reserve_their_tokens_until_they_are_counted():
    ledger, limits = Ledger(), key(tokens_per_minute=100)
    first = ledger.begin(ID, limits, 100, NOW)
    assert isinstance(ledger.begin(ID, limits, 1, NOW), LimitPassed)
    ledger.update(first, Tokens(10, 20), NOW)
    assert isinstance(ledger.begin(ID, limits, 1, NOW), LimitPassed)
    ledger.end(first, Tokens(10, 30), NOW, has_failed=False)
    assert isinstance(ledger.begin(ID, limits, 1, NOW), Charge)


def test_counts_follow_the_last_report_of_a_request_even_if_it_is_lower():
    ledger = Ledger()
    charge = ledger.begin(ID, key(), 0, NOW)
    ledger.update(charge, Tokens(10, 20), NOW)
    ledger.end(charge, Tokens(10, 15, is_estimate=True), NOW, has_failed=True)
    ledger.refuse(ID, NOW)
    assert dict(ledger.take_changes())[DAY].keys == {ID: KeyUsage(1, 1, 1, 10, 15, 1)}


def test_a_stream_over_midnight_is_counted_in_both_days():
    ledger, before = Ledger(), (DAY + 1) * 86400 - 1.0
    charge = ledger.begin(ID, key(), 0, before)
    ledger.update(charge, Tokens(10, 1), before)
    ledger.end(charge, Tokens(10, 4), before + 2, has_failed=False)
    files = dict(ledger.take_changes())
    assert [
        (each.prompt_tokens, each.completion_tokens) for each in (files[DAY].keys[ID], files[DAY + 1].keys[ID])
    ] == [
        (10, 1),
        (0, 3),
    ]
    assert files[DAY + 1].minutes[ID] == MinuteUse("2026-11-30T00:00", 0, 3)
    assert ledger.take_changes() == []


def test_days_that_could_not_be_written_are_written_later():
    ledger = Ledger()
    use(ledger, {}, 10)
    days = [day for day, _ in ledger.take_changes()]
    ledger.keep_changes(days)
    assert [day for day, _ in ledger.take_changes()] == days


@pytest.mark.parametrize("instances", [1, 2, 4])
def test_a_limit_is_passed_by_no_more_than_the_formula_says(instances):
    """Ten requests a second come in turn to the instances, which know the others' counts of ten seconds before."""
    rate, delay, most = 10, 10, 200
    ledgers, published = [Ledger() for _ in range(instances)], [[]]
    admitted, begin = 0, NOW - NOW % 60
    for turn in range(55 * rate):
        index, others = turn % instances, published[max(0, len(published) - delay * rate)]
        ledgers[index].set_others((DAY, usage) for other, usage in others if other != index)
        admitted += use(ledgers[index], {"requests_per_minute": most}, 0, begin + turn / rate)
        published.append([(number, file_of(ledger)) for number, ledger in enumerate(ledgers[: turn + 1])])
    excess = min((instances - 1) * most, rate * delay * (instances - 1) / instances)
    assert most <= admitted <= most + excess + instances
    assert instances == 1 or admitted > most


def file_of(ledger):
    ledger.keep_changes([DAY])
    return ledger.take_changes()[0][1]
