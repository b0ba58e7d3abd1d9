"""A server of HTTPS on the loopback for a domain that no DNS knows, with a certificate of an authority of its own."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bezel.rest.connect_to import ConnectTo
from bezel_localcloud.services.balancer.certificates import DomainCertificates


class _Handler(BaseHTTPRequestHandler):
    """Answers each request with its path, its `Host` and its `Authorization`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        seen = " ".join((self.path, self.headers["Host"], self.headers.get("Authorization", "-")))
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(seen)))
        self.end_headers()
        self.wfile.write(seen.encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def tls_server(folder: Path, domain: str) -> Iterator[ConnectTo]:
    """Serve a domain; its authority's certificate is kept in the folder."""
    authority = folder / "authority" / "authority.pem"
    certificates = DomainCertificates(authority)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.socket = certificates.context([domain], time.time()).wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield ConnectTo(domain, "127.0.0.1", server.server_address[1], str(authority))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
