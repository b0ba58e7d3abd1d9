"""TLS from the door to its server: the certificate is checked, for the server's name and by known authorities."""

import asyncio
import ssl

import pytest

from bezel_door.http1.client import ServerConnections, UnreachableError
from tests.support.rest.tls_server import tls_server

DOMAIN = "llm.bezel.example"


def ask(host, port, authority):
    """The body of an answer to a request by the door's connections, to this name at the loopback."""

    async def steps():
        context = ssl.create_default_context(cafile=authority)
        connections = ServerConnections(f"https://{host}", context, ("127.0.0.1", port))
        connection = await connections.connection()
        answer, pieces = connection.send(b"GET", b"/x", [(b"host", host.encode())], b""), []
        await answer.relay(pieces.append)
        connections.close()
        return b"".join(pieces)

    return asyncio.run(steps())


@pytest.mark.slow
def test_a_server_is_reached_only_with_its_certificate(tmp_path):
    with tls_server(tmp_path, DOMAIN) as served:
        assert ask(DOMAIN, served.port, served.authority) == f"/x {DOMAIN} -".encode()
        with pytest.raises(UnreachableError, match="SSLCertVerificationError"):
            ask("other.bezel.example", served.port, served.authority)
        with pytest.raises(UnreachableError, match="SSLCertVerificationError"):
            ask(DOMAIN, served.port, None)
