"""A metadata server that gives unsigned identity tokens of a chosen lifetime."""

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class MetadataServer:
    """A context.

    Attributes:
        lifetime: Seconds that the next tokens live.
        status: Of its responses.
        asked: Targets of its requests so far, and with which value of `Metadata-Flavor`.
        answers: Whether it answers; a request waits until it is set.
    """

    def __init__(self, lifetime: float = 3600) -> None:
        self.lifetime, self.status = lifetime, 200
        self.asked: list[tuple[str, str | None]] = []
        self.answers = threading.Event()
        self.answers.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers["Metadata-Flavor"]))
                content = outer.token(len(outer.asked)).encode()
                outer.answers.wait(60)
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"

    def token(self, number: int) -> str:
        """A token that holds its number."""
        return ".".join(map(_base64_of, ({"alg": "RS256"}, self._claims(number), {"signature": "planted"})))

    def _claims(self, number: int) -> dict[str, int]:
        return {"number": number, "exp": int(time.time() + self.lifetime)}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()


def number_of(authorization: str) -> int:
    """The number in a token, from the header's value."""
    claims = authorization.removeprefix("Bearer ").split(".")[1]
    return int(json.loads(base64.urlsafe_b64decode(claims + "=="))["number"])


def _base64_of(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
