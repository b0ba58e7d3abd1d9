"""A git repository served over HTTPS on the loopback, by git's own program for that: what a forge does for a clone.

At port 443, as `pulumi package add` takes a host with a port for a path, at an address that nothing else listens at.
"""

import datetime as dt
import ipaddress
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_HOST = "127.0.63.43"
_HEADERS = {"Content-Type": "CONTENT_TYPE", "Content-Encoding": "HTTP_CONTENT_ENCODING", "Git-Protocol": "GIT_PROTOCOL"}


@contextmanager
def git_server(repositories: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Serve the repositories of a folder; yields the host and the file with the server's certificate.

    Skips where this user may not listen at that port.

    Args:
        repositories: Folder of bare repositories.
        folder: Where the certificate and its key are written.
    """
    certificate, key = _write_certificate(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            variables = {name: self.headers[header] for header, name in _HEADERS.items() if header in self.headers}
            variables |= {"GIT_PROJECT_ROOT": str(repositories), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path}
            variables |= {"QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_LENGTH": str(len(body))}
            ended = subprocess.run(
                ["git", "http-backend"], input=body, env=os.environ | variables, capture_output=True, check=True
            )
            head, _, content = ended.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - named by its base
            del format, arguments

    try:
        server = ThreadingHTTPServer((_HOST, 443), Handler)
    except PermissionError:
        pytest.skip("takes root, or the right to listen at port 443")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield _HOST, certificate
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _write_certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "git of a test")])
    now = dt.datetime.now(dt.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(_HOST))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(alternative, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, key_file = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, key_file
