"""A port of localcloud for clients that send no credentials, as one account: what the engine's `gs://` backend reaches.

The engine has no credentials where STORAGE_EMULATOR_HOST is set, and localcloud's own port for such clients takes them
for its deployer, who may do everything. Here each request is sent on with a token of a job's credentials.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import httpx

from bezel_base.loopback.plain_http import NO_TLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OF_THE_CONNECTION = frozenset({"connection", "content-length", "transfer-encoding", "host", "accept-encoding"})


@contextmanager
def serving(base: str, token: Callable[[], str]) -> Iterator[str]:
    """Serve requests as an account; yields the host and port.

    Args:
        base: Address of localcloud.
        token: Returns an access token of the account.
    """
    with httpx.Client(base_url=base, timeout=60, trust_env=False, verify=NO_TLS) as client:

        def handle(handler: BaseHTTPRequestHandler) -> None:
            sent_headers = {key: text for key, text in handler.headers.items() if key.lower() not in _OF_THE_CONNECTION}
            headers = {"Authorization": f"Bearer {token()}", **sent_headers}
            answer = client.request(handler.command, handler.path, headers=headers, content=_body(handler))
            handler.send_response(answer.status_code)
            for key, text in answer.headers.items():
                if key.lower() not in _OF_THE_CONNECTION | {"content-encoding", "date", "server"}:
                    handler.send_header(key, text)
            handler.send_header("Content-Length", str(len(answer.content)))
            handler.end_headers()
            if handler.command != "HEAD":
                handler.wfile.write(answer.content)

        verbs = {f"do_{verb}": handle for verb in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")}
        quiet = {"protocol_version": "HTTP/1.1", "disable_nagle_algorithm": True, "log_message": lambda *_: None}
        handler = type("Handler", (BaseHTTPRequestHandler,), {**verbs, **quiet})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    parts = []
    while size := int(handler.rfile.readline().partition(b";")[0], 16):
        parts.append(handler.rfile.read(size))
        handler.rfile.readline()
    handler.rfile.readline()
    return b"".join(parts)
