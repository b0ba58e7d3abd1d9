"""A server on loopback that counts tokens: by a vocabulary of its own, with a template around each message."""

import contextlib
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class TokenServer:
    """What it knows, and what it was asked.

    Attributes:
        single: Words that are one token with a space in front; None is every word. Others are a token a letter.
        before: Ids that the template puts before everything, e.g. a system prompt.
        status: What it answers.
        extra: Tokens that it counts beside those of the text: a tokenizer that merges across words has fewer.
    """

    single: frozenset[str] | None = None
    before: Sequence[str] = ()
    status: int = 200
    extra: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def count(self, request: dict[str, Any]) -> list[int]:
        if "prompt" in request:
            return [2, *self._text(request["prompt"])]
        ids = [2, *(self._id(word) for word in self.before)]
        for message in request["messages"]:
            ids += [5, self._id(message["role"]), 9, *self._text(message["content"]), 6, 9]
        return [*ids, 5, self._id("model"), 9, *[7] * self.extra]

    def _text(self, text: str) -> list[int]:
        ids: list[int] = []
        for line in text.split("\n"):
            for place, word in enumerate(line.split(" ")):
                is_single = place and (self.single is None or word in self.single)
                ids += [self._id(" " + word)] if is_single else [self._id(letter) for letter in word]
            ids.append(9)
        return ids[:-1]

    @staticmethod
    def _id(word: str) -> int:
        return 10 + int.from_bytes(word.encode(), "big")


@contextlib.contextmanager
def counting(server: TokenServer) -> Iterator[TokenServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append(request | {"path": self.path, "authorization": self.headers.get("Authorization")})
            ids = server.count(request)
            reply = {"count": len(ids), "max_model_len": 4096, "tokens": ids, "token_strs": None}
            body = json.dumps(reply if server.status == 200 else {"detail": "Not Found"}).encode()
            self.send_response(server.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    server.url = f"http://127.0.0.1:{listening.server_address[1]}"
    try:
        yield server
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
