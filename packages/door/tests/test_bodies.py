"""Bodies in their framing: the same content however the bytes are cut, and nothing of the next message."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_door.http1.bodies import BodyError, ChunkedReader, LengthReader
from bezel_door.http1.server import Bodies

NEXT = b"GET / HTTP/1.1\r\n"


def take_all(reader, data, cuts):
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return b"".join(b"".join(reader.take(data[a:b])) for a, b in pairwise(places))


@settings(max_examples=60)
@given(st.lists(st.binary(min_size=1, max_size=300), max_size=5), st.lists(st.integers(0, 4000), max_size=8))
def test_chunks_are_read_however_they_are_cut(chunks, cuts):
    data = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    reader = ChunkedReader()
    assert take_all(reader, data + NEXT, cuts) == b"".join(chunks)
    assert (reader.is_complete, reader.surplus) == (True, NEXT)


@settings(max_examples=60)
@given(st.binary(max_size=40), st.lists(st.integers(0, 60), max_size=4))
def test_any_bytes_as_chunks_are_a_body_or_an_error(data, cuts):
    reader = ChunkedReader()
    try:
        take_all(reader, data, cuts)
        reader.end()
    except BodyError:
        assert not reader.is_complete or reader.surplus == b""
    else:
        assert data.startswith(b"0") or b"\r\n0" in data


def test_a_body_of_a_length_ends_there_and_not_before():
    reader = LengthReader(5)
    assert take_all(reader, b"hello" + NEXT, [2, 7]) == b"hello"
    assert (reader.is_complete, reader.surplus) == (True, NEXT)
    short = LengthReader(5)
    short.take(b"hell")
    with pytest.raises(BodyError, match="1 bytes are missing"):
        short.end()


def test_one_holder_has_half_of_the_memory_of_bodies_at_most():
    bodies = Bodies(100)
    assert [bodies.take(30, "a"), bodies.take(30, "a"), bodies.take(20, "a")] == [True, False, True]
    assert bodies.take(50, "b")
    assert not bodies.take(1)
    bodies.give_back(30, "a")
    assert [bodies.take(31, "a"), bodies.take(30, "a")] == [False, True]


def test_the_server_s_answers_share_what_is_free():
    bodies = Bodies(100)
    assert [bodies.take(80), bodies.take(21), bodies.take(20)] == [True, False, True]
    bodies.give_back(100)
    assert bodies.take(100)
