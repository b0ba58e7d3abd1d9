"""HTTP/2 with prior knowledge is refused in its own words, so that no client waits for an answer or tries again."""

import socket

import grpc
import pytest

from bezel_localcloud.http.http2_refusal import PREFACE

HEADERS, RESET, SETTINGS, PING, GO_AWAY, CONTINUATION = 1, 3, 4, 6, 7, 9
ACK, END_HEADERS = 0x1, 0x4
NO_ERROR, FRAME_SIZE_ERROR, HTTP_1_1_REQUIRED = 0x0, 0x6, 0xD
# Header blocks as literals without indexing: ":method: GET", and with the content type of gRPC in Huffman's code.
PLAIN = b"\x82\x84\x86"
OF_GRPC = PLAIN + b"\x00\x0ccontent-type\x8b" + bytes.fromhex("1d75d0620d263d4c4d6564")


def frame(kind, flags, stream, content=b""):
    return len(content).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + content


def frames(data):
    """(type, flags, stream, content) of each frame."""
    result = []
    while data:
        size = int.from_bytes(data[:3])
        result.append((data[3], data[4], int.from_bytes(data[5:9]), data[9 : 9 + size]))
        data = data[9 + size :]
    return result


def frames_of_answer(port, *pieces):
    """The frames that a client gets for what it sends piece by piece, until it or the server ends the connection."""
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            client.sendall(piece)
        client.shutdown(socket.SHUT_WR)
        data = b""
        while piece := client.recv(65536):
            data += piece
    return frames(data)


@pytest.mark.slow
def test_a_call_of_grpc_ends_at_once_and_is_not_repeated(served_port):
    served_port.seen.clear()
    with grpc.insecure_channel(f"127.0.0.1:{served_port.port}") as channel:
        call = channel.unary_unary("/google.storage.control.v2.StorageControl/ListFolders")
        for _ in range(250):  # more than one connection takes
            with pytest.raises(grpc.RpcError) as caught:
                call(b"", timeout=60)
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
            assert "HTTP/1.1 only" in caught.value.details()
    assert served_port.seen == []


def test_a_stream_of_grpc_ends_while_its_client_still_sends(served_port):
    with grpc.insecure_channel(f"127.0.0.1:{served_port.port}") as channel:
        call = channel.stream_stream("/google.storage.v2.Storage/BidiWriteObject")
        with pytest.raises(grpc.RpcError) as caught:
            list(call((b"x" * 60_000 for _ in range(100)), timeout=60))
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("cut", [0, 1, 3, 10, 23, 24, 30])
def test_another_request_is_told_to_use_http_1(served_port, cut):
    served_port.seen.clear()
    sent = PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, PLAIN)
    first, *middle, last = frames_of_answer(served_port.port, sent[:cut], sent[cut:])
    assert first == (SETTINGS, 0, 0, b"")
    assert (SETTINGS, ACK, 0, b"") in middle
    assert (RESET, 0, 1, HTTP_1_1_REQUIRED.to_bytes(4)) in middle
    assert last[:3] == (GO_AWAY, 0, 0)
    assert last[3].startswith((1).to_bytes(4) + HTTP_1_1_REQUIRED.to_bytes(4) + b"localcloud serves HTTP/1.1 only")
    assert served_port.seen == []


def test_headers_in_two_frames_are_one_request(served_port):
    for split in range(len(OF_GRPC)):
        first = frame(HEADERS, 0, 1, OF_GRPC[:split])
        answers = frames_of_answer(
            served_port.port, PREFACE + first, frame(CONTINUATION, END_HEADERS, 1, OF_GRPC[split:])
        )
        assert [one[:3] for one in answers] == [(SETTINGS, 0, 0), (HEADERS, 0x5, 1), (RESET, 0, 1)]
        assert b"grpc-status\x0212" in answers[1][3]


def test_a_ping_is_answered(served_port):
    assert (PING, ACK, 0, b"12345678") in frames_of_answer(served_port.port, PREFACE + frame(PING, 0, 0, b"12345678"))


@pytest.mark.parametrize("size", [16_385, (1 << 24) - 1])
def test_a_frame_that_is_too_large_ends_the_connection(served_port, size):
    head = size.to_bytes(3) + bytes([HEADERS, 0]) + (1).to_bytes(4)
    last = frames_of_answer(served_port.port, PREFACE + head + b"x" * 100)[-1]
    assert (last[0], last[3][4:8]) == (GO_AWAY, FRAME_SIZE_ERROR.to_bytes(4))


@pytest.mark.parametrize("line", [b"GET / HTTP/1.1", b"POST /a HTTP/1.1", b"PRIVATE / HTTP/1.1", b"PRI / HTTP/1.1"])
@pytest.mark.parametrize("cut", [1, 3, 4, 9])
def test_what_only_begins_like_http_2_is_served(served_port, line, cut):
    served_port.seen.clear()
    sent = line + b"\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served_port.port), 20) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(sent[:cut])
        client.sendall(sent[cut:])
        assert client.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
    assert [one[0] for one in served_port.seen] == [line.split()[0].decode()]
