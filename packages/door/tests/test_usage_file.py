"""Use of keys as files: what is written is read again, what is none is refused, and files add up."""

import json
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_door.usage_file import (
    KeyUsage,
    MinuteUse,
    UsageFile,
    UsageFileError,
    read_usage,
    sum_usage,
    usage_object,
    write_usage,
)

ID = "abcdefgh"
COUNTS = {
    "requests": 3,
    "failures": 1,
    "refused": 2,
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "estimated_requests": 1,
}
_IDS = st.from_regex(r"[a-z0-9]{8}", fullmatch=True)
_NUMBERS = st.integers(0, 10**15)


def document(**changes):
    return json.dumps({"version": 1, "keys": {ID: {**COUNTS, **changes}}}).encode()


@settings(max_examples=25)
@given(
    st.dictionaries(_IDS, st.builds(KeyUsage, *[_NUMBERS] * 6), max_size=3),
    st.dictionaries(_IDS, st.builds(MinuteUse, st.just("2026-11-29T08:15"), _NUMBERS, _NUMBERS), max_size=3),
)
def test_written_use_is_read_again(keys, minutes):
    assert read_usage(write_usage(UsageFile(keys, minutes))) == UsageFile(keys, minutes)


def test_a_file_as_the_contract_has_it_is_read():
    assert read_usage(document()) == UsageFile({ID: KeyUsage(3, 1, 2, 100, 20, 1)}, {})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "not JSON"),
        (b" " * (4 * 1024 * 1024 + 1), "4194304 at most"),
        (b'{"keys": {}}', "object of version"),
        (b'{"version": 2, "keys": {}}', "version 2"),
        (b'{"version": 1, "keys": {"../../x": {}}}', "by the id of a key"),
        (document(more=1), "expected an object of requests"),
        (document(requests=-1), r"abcdefgh\.requests: expected a whole number"),
        (document(requests=True), r"abcdefgh\.requests"),
        (document(prompt_tokens=1.5), r"abcdefgh\.prompt_tokens"),
        (b'{"version": 1, "keys": {}, "minutes": {"abcdefgh": {"minute": "now"}}}', r"abcdefgh\.minute"),
    ],
)
def test_a_file_that_is_none_of_use_is_refused_with_the_place(content, why):
    with pytest.raises(UsageFileError, match=why):
        read_usage(content)


def test_use_of_several_instances_adds_up_by_key():
    one, two = KeyUsage(1, 0, 0, 10, 5, 0), KeyUsage(2, 1, 3, 20, 7, 1)
    total = sum_usage([{ID: one}, {ID: two, "other123": one}])
    assert total == {ID: KeyUsage(3, 1, 3, 30, 12, 1), "other123": one}


def test_an_object_is_named_by_its_day_and_instance():
    assert usage_object(date(2026, 11, 29), "i-1") == "usage/2026-11-29/i-1.json"
