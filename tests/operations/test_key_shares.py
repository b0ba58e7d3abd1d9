"""Shares of a bill and sums of use: the parts are always the whole, to its last digit."""

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.operations.keys.shares import bill_parts, digits_of, split_amount
from bezel.operations.keys.use import TeamUse, door_use, use_result
from bezel.planner.base.money import round_usd
from bezel_door.key_file import Key
from bezel_door.usage_file import KeyUsage

USAGES = st.builds(KeyUsage, *([st.integers(0, 10**6)] * 3), *([st.integers(0, 10**12)] * 2), st.integers(0, 5))


def team(name: str, usage: KeyUsage) -> TeamUse:
    return TeamUse(team=name, **use_result(usage).model_dump())


@pytest.mark.slow
@given(
    st.decimals(0, 10**9, places=6),
    st.lists(st.fractions(0, 1000), min_size=1, max_size=9).filter(any),
    st.integers(0, 4),
)
def test_parts_add_up_to_the_rounded_whole(whole: Decimal, weights: list[Fraction], digits: int) -> None:
    parts = split_amount(whole, weights, digits)
    unit = Decimal(1).scaleb(-digits)
    assert sum(parts) == Decimal(round_usd(whole, digits))
    for part, weight in zip(parts, weights, strict=True):
        assert abs(Fraction(part) - Fraction(whole) * weight / sum(weights)) < 2 * Fraction(unit)


@pytest.mark.slow
@given(
    st.one_of(st.none(), st.decimals(0, 10**6, places=4)),
    st.lists(USAGES, max_size=5),
    st.fractions(0, 1),
    st.one_of(st.none(), st.integers(0, 10**7)),
    st.tuples(st.decimals("0.01", 10, places=3), st.decimals(0, 10, places=3)),
)
def test_a_bill_has_every_team_and_no_part_is_lost(
    usd: Decimal | None, usages: list[KeyUsage], idle: Fraction, requests: int | None, prices: tuple[Decimal, Decimal]
) -> None:
    teams = [team(f"team-{number}", usage) for number, usage in enumerate(usages)]
    parts = bill_parts(usd, teams, idle=idle, requests=requests, prices=prices)
    assert [part.name for part in parts if part.kind == "team"] == [each.team for each in teams]
    assert sum(part.percent for part in parts) == 100
    assert all(part.percent >= 0 for part in parts)
    if usd is None:
        assert {part.usd for part in parts} == {None}
    else:
        assert sum(part.usd or 0 for part in parts) == Decimal(round_usd(usd, digits_of(usd)))


SEARCH = team("search", KeyUsage(requests=30, prompt_tokens=1000, completion_tokens=100))
BILLING = team("billing", KeyUsage(requests=10, prompt_tokens=500, completion_tokens=0))
TOKENLESS = (team("a", KeyUsage(requests=1)), team("b", KeyUsage(requests=2)))
ALIKE = tuple(team(name, KeyUsage(requests=1, prompt_tokens=1)) for name in "abc")


@pytest.mark.parametrize(
    ("usd", "teams", "idle", "requests", "price_out", "expected"),
    [
        # Three quarters idle; of the 50 requests 10 came past the door.
        ("10", (SEARCH, BILLING), "3/4", 50, 5, "search 1.50, billing 0.50, other callers 0.50, idle 7.50"),
        # Monitoring has not counted the last requests yet, or was not asked.
        ("10", (SEARCH,), "0", 12, 1, "search 10.00"),
        ("10", (SEARCH,), "1/2", None, 1, "search 5.00, idle 5.00"),
        # No caller asked: the instances were idle, or started.
        ("10", (), "1/4", 0, 1, "idle 10.00"),
        ("10", (), "1/4", 8, 1, "other callers 7.50, idle 2.50"),
        # Requests without tokens are counted as such.
        ("0.1", TOKENLESS, "0", 3, 1, "a 0.0333, b 0.0667"),
        # A cent is left over: it goes to one part.
        ("1", ALIKE, "0", 3, 1, "a 0.34, b 0.33, c 0.33"),
        (None, ALIKE, "1/2", 3, 1, "a None, b None, c None, idle None"),
    ],
)
def test_a_part_is_what_its_requests_needed(
    usd: str | None, teams: tuple[TeamUse, ...], idle: str, requests: int | None, price_out: int, expected: str
) -> None:
    whole, prices = Decimal(usd) if usd else None, (Decimal(1), Decimal(price_out))
    parts = bill_parts(whole, teams, idle=Fraction(idle), requests=requests, prices=prices)
    assert ", ".join(f"{part.name} {part.usd}" for part in parts) == expected


@pytest.mark.slow
@given(st.dictionaries(st.integers(1, 28), st.dictionaries(st.sampled_from("abcd"), USAGES), max_size=6))
def test_keys_teams_and_days_have_the_same_sum(by_number: dict[int, dict[str, KeyUsage]]) -> None:
    by_day = {
        date(2026, 9, number): {letter * 8: usage for letter, usage in by_key.items()}
        for number, by_key in by_number.items()
    }
    made = door_use({}, {}, date(2026, 9, 1), date(2026, 9, 1)).total
    assert (made.requests, made.tokens) == (0, 0)
    keys = {letter * 8: _key("x" if letter in "ab" else "") for letter in "abc"}
    use = door_use(keys, by_day, date(2026, 9, 1), date(2026, 9, 20))
    counted = [usage for day, usages in by_day.items() if day.day <= 20 for usage in usages.values()]
    assert use.total == use_result(sum(counted, KeyUsage()))
    for parts in (use.keys, use.teams, use.days):
        for name in type(use.total).model_fields:
            assert sum(getattr(part, name) for part in parts) == getattr(use.total, name)
    assert {part.team for part in use.teams} <= {"x", "(no team)"}
    gone = any("d" * 8 in usages for day, usages in by_day.items() if day.day <= 20)
    assert any("dddddddd" in note for note in use.notes) == gone


def _key(team_name: str) -> Key:
    return Key("0" * 64, team_name, datetime(2026, 9, 1, tzinfo=UTC))
