"""Keys as a file: what is written is read again, what is none is refused, and a key is judged by all of it."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_door.key_file import (
    Key,
    KeyFileError,
    KeyRefusal,
    create_key_text,
    hash_key,
    judge_key,
    key_id,
    read_keys,
    write_keys,
)

NOW = datetime(2026, 11, 29, 8, 15, tzinfo=UTC)
TEXT = create_key_text(lambda count: bytes(range(count)))
ID = "abcdefgh"
RECORD = {
    "hash": hash_key(TEXT),
    "team": "search",
    "created": "2026-11-29T08:15:00Z",
    "expires": None,
    "revoked": "2026-11-29T10:15:00+02:00",
    "requests_per_minute": 60,
    "tokens_per_minute": None,
    "tokens_per_day": 1,
    "models": ["gemma"],
}
KEY = Key(hash_key(TEXT), "search", NOW, revoked=NOW, requests_per_minute=60, tokens_per_day=1, models=("gemma",))
_TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda time: time.replace(microsecond=0)
)
_LIMITS = st.none() | st.integers(1, 10**12)
_KEYS = st.builds(
    Key,
    hash=st.text("0123456789abcdef", min_size=64, max_size=64),
    team=st.sampled_from(["", "search", "Team-1.b_c"]),
    created=_TIMES,
    expires=st.none() | _TIMES,
    revoked=st.none() | _TIMES,
    requests_per_minute=_LIMITS,
    tokens_per_minute=_LIMITS,
    tokens_per_day=_LIMITS,
    models=st.lists(st.sampled_from(["gemma", "org/model:1"]), max_size=2).map(tuple),
)


def document(**changes):
    return json.dumps({"version": 1, "keys": {ID: {**RECORD, **changes}}}).encode()


@settings(max_examples=25)
@given(st.dictionaries(st.from_regex(r"[a-z0-9]{8}", fullmatch=True), _KEYS, max_size=3))
def test_written_keys_are_read_again(keys):
    assert read_keys(write_keys(keys)) == keys


def test_a_file_as_the_contract_has_it_is_read():
    assert read_keys(document()) == {ID: KEY}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b" " * (4 * 1024 * 1024 + 1), "4194304 at most"),
        (b"[]", "object of version"),
        (b'{"version": 2, "keys": {}}', "version 2; this program reads version 1"),
        (b'{"version": true, "keys": {}}', "version True"),
        (b'{"version": 1, "keys": []}', "keys: expected an object"),
        (b'{"version": 1, "keys": {"A": {}}}', "'A': an id has 8"),
        (document(more=1), "expected an object of created"),
        (document(hash="00"), r"abcdefgh\.hash"),
        (document(team="a\nb"), r"abcdefgh\.team"),
        (document(created=None), r"abcdefgh\.created"),
        (document().replace(b"abcdefgh", TEXT.encode()), "^'bezel-ab': an id has 8"),
        (document(expires="9999-12-31T23:59:59-05:00"), r"abcdefgh\.expires: expected a time"),
        (document(created="0001-01-01T00:00:00+05:00"), r"abcdefgh\.created: expected a time"),
        (document(expires="2026-11-29T08:15:00"), r"abcdefgh\.expires: expected a time"),
        (document(revoked=1), r"abcdefgh\.revoked"),
        (document(requests_per_minute=0), r"abcdefgh\.requests_per_minute"),
        (document(tokens_per_day=True), r"abcdefgh\.tokens_per_day"),
        (document(models="gemma"), r"abcdefgh\.models"),
        (document(models=["a b"]), r"abcdefgh\.models"),
    ],
)
def test_a_file_that_is_none_of_keys_is_refused_with_the_place(content, why):
    with pytest.raises(KeyFileError, match=why):
        read_keys(content)


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        (TEXT, {}, (ID, Key(hash_key(TEXT), "", NOW))),
        (TEXT[:-1] + "A", {}, KeyRefusal.WRONG),
        (TEXT.replace(ID, "abcdefgi"), {}, KeyRefusal.WRONG),
        (TEXT + "\n", {}, KeyRefusal.WRONG),
        ("", {}, KeyRefusal.WRONG),
        ("\udc80", {}, KeyRefusal.WRONG),
        (TEXT, {"revoked": NOW}, KeyRefusal.REVOKED),
        (TEXT, {"expires": NOW}, KeyRefusal.EXPIRED),
        (TEXT[:-1] + "A", {"revoked": NOW}, KeyRefusal.WRONG),
    ],
)
def test_a_key_is_judged_by_its_whole_text_and_its_times(text, changes, expected):
    assert judge_key({ID: Key(hash_key(TEXT), "", NOW, **changes)}, text, NOW) == expected


def test_a_key_holds_until_the_moment_it_expires():
    key = Key(hash_key(TEXT), "", NOW, expires=NOW + timedelta(seconds=1))
    assert judge_key({ID: key}, TEXT, NOW) == (ID, key)
    assert judge_key({ID: key}, TEXT, NOW + timedelta(seconds=1)) is KeyRefusal.EXPIRED


def test_a_new_key_has_its_form_and_its_own_text():
    texts = {create_key_text() for _ in range(50)}
    assert len(texts) == 50
    assert all(len(text) == 58 and len(key_id(text)) == 8 for text in texts)
    assert f"bezel-{ID}-AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8" == TEXT
