"""A tiny container for localcloud's launcher: what it does is said by its arguments and by the paths asked of it.

--exit=N ends at once with a status; --silent never listens; --boot=S waits S seconds before it listens; --starts-in=S
tells that its start took S seconds of the platform, as a simulated server does.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OPTIONS = dict(argument.lstrip("-").partition("=")[::2] for argument in sys.argv[1:])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet an answer: unbuffered, its second one waits 40 ms for the first one's acknowledgement

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path.startswith("/die"):
            os._exit(7)
        if self.path == "/health" and UNHEALTHY.is_set():
            self.send_error(500)
            return
        if self.path == "/hang-up":
            UNHEALTHY.set()
        if self.path.startswith("/wait"):
            time.sleep(float(self.path.partition("=")[2] or 1))
        if self.path.startswith("/stream"):
            self.stream()
            return
        if self.path.startswith("/say"):
            print(self.path.partition("=")[2], flush=True)
        self.answer(b"")

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers.get("content-length", 0))))

    def answer(self, body: bytes) -> None:
        seen = {
            "method": self.command,
            "path": self.path,
            "headers": {key.lower(): value for key, value in self.headers.items()},
            "body": body.decode(),
            "pid": os.getpid(),
            "arguments": sys.argv[1:],
            "environment": dict(os.environ),
        }
        content = json.dumps(seen).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def stream(self) -> None:
        """One chunk, then the rest only after somebody asked for /go: buffering would never see the first."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for text in ("data: first\n\n", "data: second\n\n"):
            self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())
            self.wfile.flush()
            if self.path.endswith("broken"):
                self.close_connection = True
                return
            GO.wait(10)
        self.wfile.write(b"0\r\n\r\n")


GO = threading.Event()
UNHEALTHY = threading.Event()


class GoHandler(Handler):
    def do_GET(self) -> None:
        if self.path == "/go":
            GO.set()
        super().do_GET()


if __name__ == "__main__":
    print("container begins", flush=True)
    print("a line on stderr", file=sys.stderr, flush=True)
    if "exit" in OPTIONS:
        sys.exit(int(OPTIONS["exit"]))
    time.sleep(float(OPTIONS.get("boot", 0)))
    if "silent" in OPTIONS:
        time.sleep(3600)
    if "starts-in" in OPTIONS:
        os.write(int(os.environ["LOCALCLOUD_START_REPORT"]), OPTIONS["starts-in"].encode())
    host, port = os.environ["LOCALCLOUD_LISTEN"].split(":")
    ThreadingHTTPServer((host, int(port)), GoHandler).serve_forever()
