"""Certificates are read at the first secure connection, and verified at each."""

import ssl
import subprocess
import sys
import time

import pytest

from bezel.rest.transport import CertificatesOnDemand, certificates
from bezel_localcloud.access.certificates import server_certificate
from localcloud_support.served_port import ServedPort

ASK = """
import sys
import httpx
from bezel.rest.transport import certificates, new_client

with new_client(20.0) as client:
    try:
        print(client.get(sys.argv[1]).status_code)
    except httpx.ConnectError as error:
        print("certificate verify failed" in str(error))
print(certificates.cache_info().currsize)
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return server_certificate(tmp_path_factory.mktemp("certificates") / "c", time.time())


def print_of_request(url, **variables):
    """What a process of its own prints: the status, or whether the certificate was refused, and the contexts read."""
    run = subprocess.run(
        [sys.executable, "-c", ASK, url], capture_output=True, text=True, timeout=60, check=True, env=variables
    )
    return run.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(("trusts", "outcome"), [(True, "200"), (False, "True")])
def test_a_secure_server_is_verified(certificate, trusts, outcome):
    port = ServedPort((certificate.chain, certificate.key))
    try:
        variables = {"SSL_CERT_FILE": str(certificate.authority)} if trusts else {}
        assert print_of_request(f"https://127.0.0.1:{port.port}/x", **variables) == [outcome, "1"]
    finally:
        port.close()


@pytest.mark.slow
def test_a_plain_connection_reads_no_certificates():
    port = ServedPort()
    try:
        assert print_of_request(f"http://127.0.0.1:{port.port}/x") == ["200", "0"]
    finally:
        port.close()


def test_a_connection_within_a_secure_one_is_verified_too():
    """As through a proxy over https: httpcore connects by buffers then, not by a socket."""
    lazy = CertificatesOnDemand(ssl.PROTOCOL_TLS_CLIENT)
    connection = lazy.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="localhost")
    assert connection.context is certificates()
    assert connection.context.cert_store_stats()["x509_ca"] > 0 == lazy.cert_store_stats()["x509_ca"]
    assert connection.context.verify_mode is ssl.CERT_REQUIRED
