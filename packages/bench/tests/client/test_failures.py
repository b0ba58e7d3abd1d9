"""Every way in which a request can fail on the wire is a sample of its kind; beside each, the way that is none."""

import asyncio
import itertools
import socket
from typing import TYPE_CHECKING

import pytest

from bench_support.wire import (
    DONE,
    HEAD,
    ROLE,
    TOKEN,
    USAGE,
    Wire,
    WireRequest,
    chunk,
    document,
    good,
    measure_undisturbed,
    replies,
    send,
    serving,
    stream,
)
from bezel_base.errors import UserError
from bezel_bench.load.plan import Constant

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from bezel_bench.result.sample import Measured

WHOLE = b"".join(stream())


def failures(wire: Wire, **how: object) -> list[str]:
    return [sample.failure for sample in send(wire.url, **how).samples]  # type: ignore[arg-type]


def test_a_good_answer_has_all_its_instants_in_order_and_its_counts() -> None:
    with serving() as wire:
        measured = send(wire.url)
    (sample,) = measured.samples
    assert (sample.failure, sample.status, sample.prompt_tokens, sample.output_tokens) == ("", 200, 16, 2)
    assert (sample.asked_tokens, len(sample.chunks), sample.group) == (2, 2, 0)
    assert measured.began <= sample.planned <= sample.sent < sample.first <= sample.last <= sample.done
    assert sample.done == measured.ended
    head = wire.asked[0].head
    assert head.startswith("POST /v1/chat/completions HTTP/1.1\r\n")
    assert wire.asked[0].body == b'{"prompt":"0/0"}'


@pytest.mark.parametrize(
    ("pieces", "close", "kind", "detail"),
    [
        ([], True, "no_answer", "without an answer"),
        ([b"HTTP/1.1 200 OK\r\ncont"], True, "truncated", "head"),
        ([HEAD], True, "truncated", "body"),
        ([HEAD, chunk(ROLE + TOKEN)], True, "truncated", "[DONE]"),
        ([HEAD, chunk(TOKEN + USAGE % 1 + DONE)[:-9]], True, "truncated", "[DONE]"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"], True, "truncated", "closed"),
        ([b"220 mail.example.com ESMTP\r\n"], False, "bad_json", "not HTTP"),
        ([HEAD, b"zz\r\n"], False, "bad_json", "not HTTP"),
        ([document(b'{"error":"busy"}', "503 Service Unavailable")], False, "http_5xx", "busy"),
        ([document(b'{"error":{"message":"slow down"}}', "429 Too Many Requests")], False, "http_429", "slow down"),
        ([document(b"", "404 Not Found")], False, "http_404", ""),
        ([document(b'{"error":{"message":"no"}}')], False, "error_in_body", "no"),
        (
            [HEAD, chunk(b'data: {"error":{"message":"died"}}\n\n' + DONE) + b"0\r\n\r\n"],
            False,
            "error_in_stream",
            "died",
        ),
        ([HEAD, chunk(TOKEN + DONE) + b"0\r\n\r\n"], False, "bad_usage", "no usage"),
        ([HEAD, chunk(ROLE + USAGE % 0 + DONE) + b"0\r\n\r\n"], False, "no_token", "no token"),
    ],
)
def test_what_goes_wrong_is_counted_by_its_kind(pieces: list[bytes], close: bool, kind: str, detail: str) -> None:
    with serving(replies(*pieces, close=close)) as wire:
        (sample,) = send(wire.url).samples
    assert (sample.failure, detail in sample.detail) == (kind, True), sample.detail
    assert sample.done >= sample.sent > 0


@pytest.mark.parametrize(
    ("pieces", "close"),
    [
        # One byte a packet; a length instead of chunks; the end shown by closing; 1xx before; trailers after.
        ([WHOLE[at : at + 1] for at in range(len(WHOLE))], False),
        ([document(ROLE + TOKEN + TOKEN + USAGE % 2 + DONE)], False),
        ([b"HTTP/1.1 200 OK\r\n\r\n" + TOKEN, TOKEN + USAGE % 2 + DONE], True),
        ([b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + TOKEN, TOKEN + USAGE % 2 + DONE], True),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", WHOLE], False),
        ([WHOLE[:-2] + b"x-took: 3\r\n\r\n"], False),
        ([document(b'{"choices":[{"text":"a"}],"usage":{"prompt_tokens":16,"completion_tokens":2}}')], False),
    ],
)
def test_answers_of_any_framing_are_good(pieces: list[bytes], close: bool) -> None:
    with serving(replies(*pieces, close=close)) as wire:
        (sample,) = send(wire.url).samples
    assert (sample.failure, sample.detail, sample.output_tokens) == ("", "", 2)


def test_a_connection_that_breaks_before_any_answer_is_reset() -> None:
    async def breaks(_: WireRequest, writer: asyncio.StreamWriter) -> None:
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    with serving(breaks) as wire:
        (sample,) = send(wire.url).samples
    assert (sample.failure, sample.status) == ("reset", 0)
    assert "reset" in sample.detail


@pytest.mark.parametrize(("pieces", "kind"), [([], "no_answer"), ([HEAD, chunk(TOKEN)], "timeout")])
def test_a_deadline_ends_a_request_that_is_not_answered_in_time(pieces: list[bytes], kind: str) -> None:
    async def stops(_: WireRequest, writer: asyncio.StreamWriter) -> None:
        writer.writelines(pieces)
        await asyncio.sleep(30)

    def measure(slower: int) -> "Measured":
        with serving(stops) as wire:
            return send(wire.url, deadline_seconds=0.8 * slower)

    def seconds_of(measured: "Measured") -> float:
        return (measured.samples[0].done - measured.samples[0].sent) / 1e9

    measured = measure_undisturbed(
        measure, lambda measured: bool(measured.samples[0].status) == bool(pieces) and seconds_of(measured) < 8
    )
    assert measured.samples[0].failure == kind
    assert 0.8 <= seconds_of(measured) < 29


def test_request_after_a_failure_is_sent_on_a_counted_new_connection() -> None:
    ways = itertools.cycle([good, replies(HEAD, close=True)])

    async def every_other(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        await next(ways)(asked, writer)

    with serving(every_other) as wire:
        measured = send(wire.url, 4)
    assert [sample.failure for sample in measured.samples] == ["", "truncated", "", "truncated"]
    assert (measured.client.connections, measured.client.reconnections) == (2, 1)
    assert wire.connections == 2


def test_a_connection_is_kept_for_all_requests_of_its_user() -> None:
    with serving() as wire:
        measured = send(wire.url, 20)
    assert [sample.failure for sample in measured.samples] == [""] * 20
    assert (measured.client.connections, measured.client.reconnections, wire.connections) == (1, 0, 1)


@pytest.mark.parametrize("head", [b"connection: close", b"connection: keep-alive"])
def test_a_server_that_closes_after_each_answer_is_asked_anew_each_time(head: bytes) -> None:
    closes = b"close" in head
    answer = replies(WHOLE.replace(b"\r\n\r\n", b"\r\n" + head + b"\r\n\r\n", 1), close=closes)
    with serving(answer) as wire:
        measured = send(wire.url, 5)
    assert [sample.failure for sample in measured.samples] == [""] * 5
    assert measured.client.reconnections == (4 if closes else 0)


def test_a_server_that_is_not_there_is_no_measurement() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(UserError, match=r"accepts no connection \(Connection refused\).*nothing can be measured"):
        send(f"http://127.0.0.1:{port}")


def test_a_server_that_goes_away_refuses_what_follows() -> None:
    with serving() as wire:

        async def last(_: WireRequest, writer: asyncio.StreamWriter) -> None:
            wire.stop_listening()
            writer.write(WHOLE.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))

        wire.answering = last
        measured = send(wire.url, 3)
    assert [sample.failure for sample in measured.samples] == ["", "refused", "refused"]
    assert measured.client.connect_failures == 2
    # A user waits a little after each, or a server that is gone would be asked as fast as a loop turns.
    assert measured.samples[2].planned - measured.samples[1].done >= 90_000_000


def test_a_name_that_nobody_has_is_reported() -> None:
    with pytest.raises(UserError, match="cannot be resolved"):
        send("http://nobody.invalid")


def test_a_failure_is_one_sample_and_never_sent_again() -> None:
    with serving(replies(document(b"{}", "500 Internal Server Error"))) as wire:
        assert failures(wire, requests=7) == ["http_5xx"] * 7
        assert len(wire.asked) == 7


def test_in_an_open_loop_failures_keep_their_place_and_stop_nobody() -> None:
    ways = itertools.cycle([good, replies(close=True)])

    async def every_other(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        await next(ways)(asked, writer)

    with serving(every_other) as wire:
        measured = send(wire.url, 40, Constant(400))
    assert [sample.index for sample in measured.samples] == [*range(40)]
    assert sum(sample.failure == "no_answer" for sample in measured.samples) == 20


def test_what_a_server_repeats_of_a_token_is_not_kept() -> None:
    with serving(replies(document(b'{"error":"token secret-of-mine is bad"}', "401 Unauthorized"))) as wire:
        (sample,) = send(wire.url, headers=lambda: {"Authorization": "Bearer secret-of-mine"}).samples
    assert "Authorization: Bearer secret-of-mine\r\n" in wire.asked[0].head
    assert (sample.failure, sample.detail) == ("http_401", "token *** is bad")
