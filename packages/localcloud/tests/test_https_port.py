"""The port over https: its certificate, the names that it is for, and the same answers as over http."""

import socket
import ssl
import time

import grpc
import pytest

from bezel_localcloud.access.certificates import server_certificate
from bezel_localcloud.http.serving import REFUSAL
from localcloud_support.served_port import ServedPort

NOW = 1_795_000_000.0  # 2026-11-18
DAY = 86_400.0
REQUEST = b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def https_port(tmp_path_factory):
    """(a port over https, its certificate)."""

    certificate = server_certificate(tmp_path_factory.mktemp("certificates") / "c", time.time())
    port = ServedPort((certificate.chain, certificate.key))
    yield port, certificate
    port.close()


def exchange(port, authority, name, sent):
    context = ssl.create_default_context(cafile=authority)
    with (
        socket.create_connection(("127.0.0.1", port), 20) as plain,
        context.wrap_socket(plain, server_hostname=name) as s,
    ):
        s.sendall(sent)
        data = b""
        while piece := s.recv(65536):
            data += piece
    return data


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "shelf.storage.localhost"])
def test_a_client_that_trusts_the_authority_is_served(https_port, name):
    port, certificate = https_port
    assert exchange(port.port, certificate.authority, name, REQUEST).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("name", ["storage.googleapis.com", "127.0.0.2", "a.b.storage.localhost"])
def test_the_certificate_is_for_no_other_name(https_port, name):
    port, certificate = https_port
    with pytest.raises(ssl.SSLCertVerificationError):
        exchange(port.port, certificate.authority, name, REQUEST)


def test_a_client_that_does_not_trust_the_authority_is_not_served(https_port, tmp_path):
    port, _ = https_port
    other = server_certificate(tmp_path / "other", NOW)
    port.seen.clear()
    with pytest.raises(ssl.SSLCertVerificationError):
        exchange(port.port, other.authority, "localhost", REQUEST)
    assert port.seen == []


@pytest.mark.slow
def test_a_malformed_request_is_refused_over_https_too(https_port):
    port, certificate = https_port
    assert exchange(port.port, certificate.authority, "localhost", b"GET\r\n\r\n") == REFUSAL
    assert port.errors == []


def test_a_request_without_tls_is_no_request(https_port):
    port, _ = https_port
    port.seen.clear()
    with socket.create_connection(("127.0.0.1", port.port), 20) as client:
        client.sendall(REQUEST)
        assert not client.recv(65536).startswith(b"HTTP/1.1 200")
    assert port.seen == []


def test_a_certificate_is_kept_until_it_is_about_to_expire(tmp_path):
    first = server_certificate(tmp_path / "c", NOW)
    content = [path.read_bytes() for path in first]
    assert [path.read_bytes() for path in server_certificate(tmp_path / "c", NOW + 360 * DAY)] == content
    assert all(path.read_bytes() not in content for path in server_certificate(tmp_path / "c", NOW + 370 * DAY))
    first.key.unlink()
    assert server_certificate(tmp_path / "c", NOW + 370 * DAY).key.exists()


def test_a_damaged_certificate_is_made_again(tmp_path):
    certificate = server_certificate(tmp_path / "c", NOW)
    certificate.chain.write_text("damaged")
    assert b"BEGIN CERTIFICATE" in server_certificate(tmp_path / "c", NOW).chain.read_bytes()


def test_the_files_are_their_owner_s(tmp_path):
    certificate = server_certificate(tmp_path / "c", NOW)
    assert {path.stat().st_mode & 0o777 for path in certificate} == {0o600}
    assert certificate.key.parent.stat().st_mode & 0o777 == 0o700


def test_a_client_of_both_protocols_gets_http_1(https_port):
    port, certificate = https_port
    for offered, chosen in ((["h2", "http/1.1"], "http/1.1"), (["http/1.1"], "http/1.1"), (["h2"], "h2")):
        context = ssl.create_default_context(cafile=certificate.authority)
        context.set_alpn_protocols(offered)
        plain = socket.create_connection(("127.0.0.1", port.port), 20)
        with plain, context.wrap_socket(plain, server_hostname="localhost") as client:
            assert client.selected_alpn_protocol() == chosen


def test_a_call_of_grpc_over_tls_ends_at_once(https_port):
    port, certificate = https_port
    trust = grpc.ssl_channel_credentials(certificate.authority.read_bytes())
    with grpc.secure_channel(f"localhost:{port.port}", trust) as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/google.storage.control.v2.StorageControl/GetStorageLayout")(b"", timeout=60)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
