"""A server of HTTPS on the loopback for a domain that no DNS knows, with a certificate of an authority of its own."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bezel.rest.connect_to import ConnectTo
from bezel_localcloud.services.balancer.certificates import DomainCertificates

Respond = Callable[[str, str, str], tuple[int, str]]
"""Status and body of a response, by the path, `Host` and `Authorization` of a request, "-" without one."""


def echo(path: str, host: str, authorization: str) -> tuple[int, str]:
    """Respond with what was sent."""
    return 200, f"{path} {host} {authorization}"


def _handler(respond: Respond) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, body = respond(self.path, self.headers["Host"], self.headers.get("Authorization", "-"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    return Handler


@contextmanager
def tls_server(folder: Path, domain: str, respond: Respond = echo) -> Iterator[ConnectTo]:
    """Serve a domain; its authority's certificate is kept in the folder."""
    authority = folder / "authority" / "authority.pem"
    certificates = DomainCertificates(authority)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(respond))
    server.socket = certificates.context([domain], time.time()).wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield ConnectTo(domain, "127.0.0.1", server.server_address[1], str(authority))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
