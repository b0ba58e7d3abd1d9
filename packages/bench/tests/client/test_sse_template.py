"""Counts without a parser are those of both parsers: one whole frame with one event like those before it."""

from __future__ import annotations

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_support.turned_loop import hear
from bench_support.wire import DONE, HEAD, ROLE, TOKEN, USAGE, chunk
from bezel_bench.client.sse_template import Alike

DATA = TOKEN[len(b"data:") : -2]


def learn_alike() -> tuple[Alike, list[int]]:
    counted: list[int] = []
    alike = Alike.learn(DATA, counted.append)
    assert alike is not None
    return alike, counted


def is_framed(alike: Alike, piece: bytes) -> bool:
    """Whether it counts, with what another frame left behind it in the buffer."""
    return alike.frame(7, piece)


class Bodies:
    """What a parser of HTTP finds in a piece that begins at the begin of a frame."""

    def __init__(self, piece: bytes) -> None:
        self.found: list[bytes] = []
        self.begun = self.ended = 0
        parser = httptools.HttpResponseParser(self)
        parser.feed_data(HEAD)
        parser.feed_data(piece)

    def on_body(self, body: bytes) -> None:
        self.found.append(body)

    def on_chunk_header(self) -> None:
        self.begun += 1

    def on_chunk_complete(self) -> None:
        self.ended += 1


def parse(piece: bytes) -> list[bytes]:
    """The bodies of whole frames, if it holds nothing else."""
    try:
        bodies = Bodies(piece)
    except httptools.HttpParserError:
        return []
    return bodies.found if len(bodies.found) == bodies.begun == bodies.ended else []


TEXTS = st.one_of(
    st.text(st.characters(codec="latin-1"), max_size=5).map(str.encode),
    st.sampled_from([b"tok", b"\\n", b'\\"', b"\\", b'"', b"\\u00e9", b"a" * 300, b'","x":"', b"\n\n", b"\r\n"]),
)


@pytest.mark.slow
@settings(max_examples=80)
@given(TEXTS, st.integers(-2, 2), st.sampled_from([b"%x", b"%X", b"0%x", b"%x;a=b", b"+%x"]), st.integers(0, 3))
def test_frame_counts_only_if_parsers_find_one_event_like_those_before(
    text: bytes, more: int, size: bytes, cut: int
) -> None:
    alike, counted = learn_alike()
    event = TOKEN.replace(b" tok", text)
    piece = (size % (len(event) + more)) + b"\r\n" + event + b"\r\n"
    piece = piece[: len(piece) - cut]
    counts = is_framed(alike, piece)
    assert counted == [7] * counts
    bodies = parse(piece)
    if counts:
        assert (len(bodies), alike.event(7, bodies[0])) == (1, True)
    elif size == b"%x":
        assert len(bodies) != 1 or not alike.event(7, bodies[0]), "as servers write them they all count"


@pytest.mark.parametrize("size", [1, 10, 15, 16, 100, 255, 256, 1000, 1900])
def test_frames_of_any_usual_size_count(size: int) -> None:
    alike, counted = learn_alike()
    assert is_framed(alike, chunk(TOKEN.replace(b" tok", b"a" * size)))
    assert counted == [7]


@pytest.mark.parametrize(
    "piece",
    [
        b"",
        b"0\r\n\r\n",
        chunk(TOKEN) * 2,
        chunk(TOKEN * 2),
        chunk(DONE),
        chunk(TOKEN.replace(b"}}]}", b"}}]]")),
        chunk(TOKEN.replace(b" tok", b"a" * 5000)),
        # No frame is 262 bytes long: 255 need six more, 256 seven.
        TOKEN.replace(b" tok", b"a" * (264 - len(TOKEN))) + b"\r\n",
    ],
)
def test_what_is_no_single_event_of_a_usual_size_is_left_to_the_parsers(piece: bytes) -> None:
    alike, counted = learn_alike()
    assert not is_framed(alike, piece)
    assert counted == []


@pytest.mark.parametrize(
    "data", [b'{"choices":[]}', b'{"content":""}', b'{"content":"a","text":"b","reasoning":"c"}', b'{"content":"\\n"}']
)
def test_nothing_is_like_an_event_without_one_or_two_plain_texts(data: bytes) -> None:
    counted: list[int] = []
    assert Alike.learn(data, counted.append) is None


@pytest.mark.parametrize(
    ("texts", "counts"),
    [
        ((b" tok", b" tok"), True),
        ((b"a", b"another, longer"), True),
        ((b'\\"', b"\\n\\\\"), True),
        ((b'a\\",\\"reasoning_content\\":\\"', b"b"), True),
        ((b"", b"a"), False),
        ((b"a", b""), False),
        ((b"a\\", b"b"), False),
        ((b"a", b"\\"), False),
        ((b'a","reasoning_content":"b', b"c"), False),
        ((b"a", b'","reasoning_content":"'), False),
        (("é".encode(), b"a"), False),
        ((b"a", b"\\u00e9"), False),
    ],
)
def test_an_event_that_repeats_its_text_counts_if_both_are_plain(texts: tuple[bytes, bytes], counts: bool) -> None:
    event = b'{"choices":[{"delta":{"reasoning":"%b","reasoning_content":"%b"}}]}'
    counted: list[int] = []
    alike = Alike.learn(event % (b"one", b"one"), counted.append)
    assert alike is not None
    whole = b"data:" + event % texts + b"\n\n"
    assert (alike.event(7, whole), is_framed(alike, chunk(whole))) == (counts, counts)
    assert counted == [7, 7] * counts


ALIKE = [HEAD, chunk(ROLE + TOKEN), *[chunk(TOKEN)] * 20]
FRAME = chunk(TOKEN)
LAST = chunk(DONE) + b"0\r\n\r\n"
ACCENT = chunk(TOKEN.replace(b"tok", "é".encode()))


@pytest.mark.parametrize(
    "among",
    [
        [FRAME] * 2,
        [FRAME[:9], FRAME[9:] + FRAME],
        [FRAME[:-2], b"\r\n" + FRAME],
        [FRAME + FRAME[:4], FRAME[4:]],
        # A frame within a frame is a part of its body.
        [FRAME + b"%x\r\n" % len(FRAME), FRAME, b"\r\n"],
        [FRAME + FRAME],
        [ACCENT, FRAME],
        [FRAME, ACCENT],
        [b"0" + FRAME, FRAME],
        [FRAME.replace(b"\r\n", b";x=y\r\n", 1), FRAME],
        [chunk(b": ping\n\n"), FRAME, chunk(TOKEN[:20]), chunk(TOKEN[20:])],
    ],
)
def test_after_frames_alike_any_other_counts_as_it_did(among: list[bytes]) -> None:
    sample = hear(*ALIKE, *among, chunk(USAGE % 23), LAST, close=False)
    assert (sample.failure, sample.detail, sample.output_tokens, len(sample.chunks)) == ("", "", 23, 23)
    assert list(sample.chunks) == sorted(sample.chunks)
    assert (sample.first, sample.last) == (sample.chunks[0], sample.chunks[-1])


@pytest.mark.parametrize(
    ("then", "close", "kind"),
    [
        ([b"1" + FRAME], True, "truncated"),
        ([FRAME[1:]], False, "bad_json"),
        ([b"zz\r\n"], False, "bad_json"),
        ([FRAME[:-1]], True, "truncated"),
        ([], True, "truncated"),
        ([chunk(TOKEN.replace(b" tok", b"\x01")), LAST], False, "bad_json"),
        ([chunk(b'data: {"error":{"message":"died"}}\n\n'), LAST], False, "error_in_stream"),
        ([chunk(USAGE % 20), LAST], False, "bad_usage"),
    ],
)
def test_after_frames_alike_any_fault_is_seen_to_be_one(then: list[bytes], close: bool, kind: str) -> None:
    sample = hear(*ALIKE, *then, close=close)
    assert (sample.failure, len(sample.chunks) >= 21) == (kind, True), sample.detail
