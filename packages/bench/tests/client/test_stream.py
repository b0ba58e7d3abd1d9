"""Answers read into samples: as recorded from a real server, however the network cuts them, and every fault inside."""

import itertools

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_support.recorded import recorded_stream
from bezel_bench.client.response_buffer import LARGE, MANY, Backlog, ResponseBuffer
from bezel_bench.client.stream import AnswerReader
from bezel_bench.result.sample import KINDS, Sample

RECORDED = [(round(at * 1e6), line) for at, line in recorded_stream("chat-stream-usage.txt")]
WHOLE = b"".join(line for _, line in RECORDED)
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":%d,"total_tokens":9}}\n\n'
DONE = b"data: [DONE]\n\n"
CONTENT = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
GOOD = CONTENT + USAGE % 1 + DONE


def read(*pieces: bytes, status: int = 200, cut: bool = False) -> Sample:
    """Pieces arrive at 10, 20, ...; the answer ends 10 after the last."""
    reader = AnswerReader(Sample(0, status=status))
    for number, piece in enumerate(pieces, 1):
        reader.feed([number * 10], [piece])
    return reader.finish(len(pieces) * 10 + 10, cut=cut)


def delta(fields: str) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{%b}}]}\n\n' % fields.encode()


def test_recorded_stream_gives_instants_of_tokens_and_counts_of_usage() -> None:
    reader = AnswerReader(Sample(0, status=200))
    reader.feed([at for at, _ in RECORDED], [line for _, line in RECORDED])
    sample = reader.finish(27_000_000)
    # The role's chunk (15.1 ms) and the usage's chunk carry no token.
    assert (sample.failure, sample.detail) == ("", "")
    assert (sample.first, sample.first_content, sample.last) == (15_200_000, 15_200_000, 26_000_000)
    assert (sample.prompt_tokens, sample.output_tokens, len(sample.chunks)) == (19, 6, 6)
    assert (sample.cached_tokens, sample.reasoning_tokens) == (-1, -1)


def test_an_answer_ends_with_its_last_token_though_that_has_no_text() -> None:
    """A server that ignores the end of the text continues with tokens that have none, and counts them."""
    sample = read(delta('"role":"assistant","content":""'), CONTENT, delta('"content":""'), USAGE % 2, DONE)
    assert (sample.failure, sample.first, sample.last, sample.output_tokens) == ("", 20, 30, 2)
    assert list(sample.chunks) == [20]


TEXT = b'data: {"choices":[{"text":""}]}\n\n'
ROLE = delta('"role":"assistant","content":""')
TEXTLESS = [
    # The end of the text as first token, which is not to be seen; a chat without and with a parser, and a completion.
    (ROLE, delta('"content":""').replace(b"}}]", b'},"finish_reason":"stop"}]'), USAGE % 1, DONE),
    (ROLE, delta("").replace(b"}}]", b'},"finish_reason":"stop"}]'), USAGE % 3, DONE),
    (TEXT, TEXT.replace(b"}]", b',"finish_reason":"length"}]'), USAGE % 2 + DONE),
    (b'{"choices":[{"message":{"content":""}}],', b'"usage":{"prompt_tokens":3,"completion_tokens":1}}'),
    (b'{"choices":[{"text":""}],', b'"usage":{"prompt_tokens":3,"completion_tokens":1}}'),
]


@pytest.mark.parametrize("pieces", TEXTLESS)
def test_tokens_without_a_text_are_an_answer_whose_first_token_nobody_saw(pieces: tuple[bytes, ...]) -> None:
    sample = read(*pieces)
    assert (sample.failure, sample.first, sample.first_content, len(sample.chunks)) == ("", 0, 0, 0)
    assert sample.output_tokens >= 1
    assert sample.last >= 20, "the last chunk that a choice had, or the whole document"


@pytest.mark.parametrize("pieces", TEXTLESS)
def test_an_answer_without_a_text_that_counts_no_token_holds_none(pieces: tuple[bytes, ...]) -> None:
    for count in (b"1", b"2", b"3"):
        pieces = tuple(piece.replace(b'"completion_tokens":' + count, b'"completion_tokens":0') for piece in pieces)
    assert read(*pieces).failure == "no_token"


def test_tokens_that_usage_alone_knows_of_are_none() -> None:
    assert read(USAGE % 1, DONE).failure == "no_token", "no choice ever came"


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.integers(1, len(WHOLE) - 1), max_size=12).map(lambda cuts: sorted({*cuts})))
def test_how_the_network_cuts_a_stream_changes_no_count(cuts: list[int]) -> None:
    sample = read(*(WHOLE[a:b] for a, b in itertools.pairwise([0, *cuts, len(WHOLE)])))
    assert (sample.failure, sample.prompt_tokens, sample.output_tokens) == ("", 19, 6)
    assert 10 <= sample.first <= sample.last <= (len(cuts) + 1) * 10
    assert len(sample.chunks) == 6
    assert list(sample.chunks) == sorted(sample.chunks)


def test_stream_of_single_bytes_counts_an_event_at_the_end_of_its_line() -> None:
    sample = read(*(bytes([byte]) for byte in GOOD))
    assert sample.failure == ""
    assert sample.first == (GOOD.index(b"\n") + 1) * 10


@settings(max_examples=60)
@given(st.integers(1, len(WHOLE) - 10))
def test_a_stream_cut_short_is_a_failure_wherever_it_breaks(end: int) -> None:
    # Up to the middle of its [DONE]: what follows is nothing but line ends.
    assert read(WHOLE[:end], cut=True).failure == "truncated"


@pytest.mark.parametrize(
    "piece", [WHOLE, WHOLE.replace(b"\n", b"\r\n"), WHOLE.replace(b"data: ", b"data:"), WHOLE[:-2]]
)
def test_line_ends_and_spaces_are_as_the_server_likes(piece: bytes) -> None:
    sample = read(piece)
    assert (sample.failure, sample.output_tokens, len(sample.chunks)) == ("", 6, 6)


def test_comments_and_other_fields_of_a_stream_are_no_events() -> None:
    assert read(b": ping\n\nid: 1\nevent: message\n" + GOOD).failure == ""


@pytest.mark.parametrize(
    ("body", "kind", "detail"),
    [
        (b'data: {"error": {"message": "EngineCore died"}}\n\n' + DONE, "error_in_stream", "EngineCore died"),
        (CONTENT + b'data: {"error": "Unauthorized"}\n\n' + DONE, "error_in_stream", "Unauthorized"),
        (b'data: {"object":"error","message":"too long"}\n\n' + DONE, "error_in_stream", "too long"),
        (b"data: {broken\n\n" + DONE, "bad_json", "{broken"),
        (b'data: ["a"]\n\n' + DONE, "bad_json", '["a"]'),
        (b'data: {"choices":[7]}\n\n' + DONE, "bad_json", "choices"),
        (CONTENT + DONE, "bad_usage", "no usage"),
        (CONTENT + USAGE % 0 + DONE, "bad_usage", "counts no tokens"),
        (CONTENT * 3 + USAGE % 2 + DONE, "bad_usage", "2 tokens, and 3 chunks"),
        (delta('"role":"assistant","content":""') + USAGE % 0 + DONE, "no_token", "no token"),
        (delta('"role":"assistant","content":""') + DONE, "no_token", "no token"),
        (CONTENT + USAGE % 1, "truncated", "[DONE]"),
        (b'{"error":{"message":"no","code":500}}', "error_in_body", "no"),
        (b"{}", "no_token", "no token"),
        (b'{"choices":', "bad_json", "not a completion"),
        (b"<html>Sorry</html>", "bad_json", "Sorry"),
        (b"upstream connect error", "bad_json", "upstream"),
    ],
)
def test_a_200_with_something_wrong_inside_is_a_failure_of_its_kind(body: bytes, kind: str, detail: str) -> None:
    sample = read(body)
    assert sample.failure == kind
    assert detail in sample.detail
    assert kind in KINDS


def test_an_error_of_null_is_none() -> None:
    assert read(CONTENT.replace(b'"choices"', b'"error":null,"choices"') + USAGE % 1 + DONE).failure == ""


def test_an_answer_without_a_body_is_none() -> None:
    assert read().failure == "no_token"
    assert read(cut=True).failure == "truncated"


def test_a_document_that_the_connection_cut_is_truncated() -> None:
    assert read(b'{"choices":[{"mess', cut=True).failure == "truncated"


@pytest.mark.parametrize(
    ("fields", "token", "content"),
    [
        ('"content":"a"', True, True),
        ('"reasoning":"hm"', True, False),
        ('"reasoning_content":"hm"', True, False),
        ('"tool_calls":[{"index":0,"function":{"name":"f"}}]', True, False),
        ('"tool_calls":[{"index":0,"function":{"arguments":"{"}}]', True, False),
        ('"tool_calls":[{"index":0}]', False, False),
        ('"tool_calls":[]', False, False),
        ('"role":"assistant","content":""', False, False),
        ('"role":"assistant","content":null,"reasoning":null', False, False),
        ("", False, False),
    ],
)
def test_a_token_of_any_channel_is_a_token_and_nothing_else_is(fields: str, token: bool, content: bool) -> None:
    sample = read(delta(fields), b'data: {"choices":[{"text":"z"}]}\n', USAGE % 2, DONE)
    assert sample.failure == ""
    assert sample.first == (10 if token else 20)
    assert sample.first_content == (10 if content else 20)
    assert sample.last == 20


def test_several_choices_of_one_event_are_one_chunk() -> None:
    both = b'data: {"choices":[{"index":0,"text":"a"},{"index":1,"text":"b"}]}\n\n'
    assert list(read(both, USAGE % 2, DONE).chunks) == [10]


def test_tool_calls_may_come_in_more_chunks_than_tokens() -> None:
    call = delta('"tool_calls":[{"index":0,"function":{"arguments":"{"}}]')
    assert read(call * 3, USAGE % 2, DONE).failure == ""


def test_usage_in_every_chunk_counts_once_and_its_details_are_kept_apart() -> None:
    usage = b'"usage":{"prompt_tokens":9,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":4},'
    usage += b'"completion_tokens_details":{"reasoning_tokens":1}}'
    events = [b'data: {"choices":[{"delta":{"content":"a"}}],%b}\n\n' % (usage % number) for number in (1, 2, 3)]
    sample = read(*events, DONE)
    assert (sample.failure, sample.prompt_tokens, sample.output_tokens) == ("", 9, 3)
    assert (sample.cached_tokens, sample.reasoning_tokens) == (4, 1)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.sampled_from(["content", "reasoning"]),
    st.one_of(st.text(max_size=6), st.sampled_from(['a"}', "\\", '","x":"', "\n", "é", "\x7f", '"}}],"usage":{}'])),
    st.sampled_from([b"", b'"x":"content","y":{"content":"q"},', b'"content":"a","error":null,']),
)
def test_what_is_known_from_the_chunk_before_is_what_a_parser_finds(channel: str, text: str, more: bytes) -> None:
    """Chunks like the ones before are counted without a parser; alone, each goes through it."""
    event = b'data: {%b"choices":[{"index":0,"delta":%b}]}\n\n'
    usual = event % (more, orjson.dumps({channel: "tok"}))
    this = event % (more, orjson.dumps({channel: text}))
    among, alone = read(usual, usual, usual, this, USAGE % 9, DONE), read(this, usual, USAGE % 9, DONE)
    assert among.failure == alone.failure == ""
    assert (40 in among.chunks) == (10 in alone.chunks) == bool(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *((wrong, "bad_json") for wrong in (b"\x01", b"\t", b"\xff", b'"', b"\\x")),
        (b'a"}}],"error":{"message":"no"},"choices":[{"index":0,"delta":{"content":"a', "error_in_stream"),
        (b"b", ""),
    ],
)
def test_a_chunk_like_those_before_that_is_wrong_is_seen_to_be(text: bytes, kind: str) -> None:
    this = CONTENT.replace(b'"a"', b'"%b"' % text)
    assert read(*[CONTENT] * 3, this, USAGE % 9, DONE).failure == kind


def test_nothing_counts_after_the_end() -> None:
    assert len(read(*[CONTENT] * 3, USAGE % 3, DONE, CONTENT, CONTENT).chunks) == 3


@pytest.mark.parametrize("details", ["null", "[]", '{"cached_tokens":null}', '{"cached_tokens":"4"}'])
def test_details_of_another_shape_are_unknown(details: str) -> None:
    event = (
        f'data: {{"choices":[],"usage":{{"prompt_tokens":3,"completion_tokens":1,"prompt_tokens_details":{details}}}}}'
    )
    sample = read(CONTENT, event.encode() + b"\n\n", DONE)
    assert (sample.failure, sample.cached_tokens) == ("", -1)


@pytest.mark.parametrize(
    "message", ['"message":{"content":"a"}', '"text":"a"', '"message":{"content":null,"tool_calls":[{"id":"x"}]}']
)
def test_a_whole_document_has_its_tokens_when_all_of_it_is_there(message: str) -> None:
    body = f'{{"choices":[{{{message}}}],"usage":{{"prompt_tokens":3,"completion_tokens":5}}}}'.encode()
    sample = read(body[:9], body[9:])
    assert (sample.failure, sample.output_tokens, list(sample.chunks)) == ("", 5, [30])
    assert sample.first == sample.last == 30


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "http_401"),
        (403, "http_403"),
        (404, "http_404"),
        (429, "http_429"),
        (400, "http_4xx"),
        (307, "http_4xx"),
        (503, "http_5xx"),
    ],
)
@pytest.mark.parametrize(
    "body", [b'{"error":{"message":"not today"}}', b'{"error":"not today"}', b'{"detail":"not today"}', b"not  today"]
)
def test_a_status_is_a_kind_with_what_the_server_said(status: int, kind: str, body: bytes) -> None:
    sample = read(body, status=status)
    assert (sample.failure, sample.detail) == (kind, "not today")


def test_a_long_text_of_an_error_is_cut() -> None:
    sample = read(b'{"error":"%b"}' % (b"x" * 5000), status=500)
    assert len(sample.detail) == 200


def count_pieces(answers: list[ResponseBuffer]) -> int:
    return sum(len(answer.pieces) for answer in answers)


def arrive(answer: ResponseBuffer, piece: bytes, backlog: Backlog) -> None:
    """As a connection does it."""
    if not (answer.alike and answer.alike.event(1, piece)) and answer.keep(1, piece):
        backlog.add(answer)


WORDS = st.sampled_from(["a", " tok", "\\n", '\\"', "\\\\", "\\u00e9", "é", " {", "", '"']) | st.text(
    'ab\\" ', max_size=3
)


@pytest.mark.slow
@settings(max_examples=80)
@given(st.lists(WORDS, max_size=12), st.integers(0, 3))
def test_chunks_read_as_they_arrive_are_what_they_are_to_a_parser(texts: list[str], kept_first: int) -> None:
    pieces = [CONTENT.replace(b'"a"', f'"{word}"'.encode()) for word in ["a", "b", "c", *texts]] + [USAGE % 99, DONE]
    answer, backlog = ResponseBuffer(Sample(0, status=200), b""), Backlog()
    for at, piece in enumerate(pieces, 1):
        if not (answer.alike and answer.alike.event(at, piece)):
            answer.keep(at, piece)
        if at > kept_first:
            answer.read()
    answer.at = len(pieces) + 1
    backlog.add(answer)
    backlog.read_all()
    reader = AnswerReader(Sample(0, status=200))
    for at, piece in enumerate(pieces, 1):
        # No two begin alike: each goes to the parser.
        reader.feed([at], [piece.replace(b"{", b'{"number":%d,' % at, 1)])
    expected = reader.finish(answer.at)
    expected.done = answer.at
    if expected.failure == "bad_json":
        expected.detail = answer.sample.detail
    assert answer.sample == expected


def test_a_long_stream_is_never_kept_whole() -> None:
    answer, backlog = ResponseBuffer(Sample(0, status=200), b""), Backlog()
    for _ in range(1000):
        arrive(answer, CONTENT, backlog)
        assert count_pieces([answer]) <= MANY
        backlog.read_one()
    arrive(answer, CONTENT.replace(b'"a"', b'"%b"' % (b"a" * LARGE)), backlog)
    backlog.read_one()
    assert count_pieces([answer]) == 0
    assert len(answer.sample.chunks) == 1001


@pytest.mark.slow
def test_answers_that_wait_to_be_read_are_bounded_and_every_one_is_read() -> None:
    answers = [ResponseBuffer(Sample(number, status=200), b"") for number in range(5000)]
    backlog = Backlog()
    for answer in answers:
        arrive(answer, GOOD, backlog)
        answer.at = 9
        backlog.add(answer)
    # No reader had a moment: the oldest were read all the same.
    assert count_pieces(answers) == 4096
    backlog.read_all()
    assert count_pieces(answers) == 0
    assert {(answer.sample.failure, answer.sample.done) for answer in answers} == {("", 9)}


@pytest.mark.slow
@settings(max_examples=80)
@given(st.binary(max_size=60), st.integers(0, 60))
def test_whatever_a_server_sends_is_read_to_an_end(rubbish: bytes, cut: int) -> None:
    pieces = [piece for piece in (b"data: " + rubbish[:cut], rubbish[cut:] + b"\n\n", DONE) if piece]
    assert read(*pieces).failure
