"""A port of localcloud with an application that notes each request it has read whole, served by a thread."""

import asyncio
import threading

from bezel_base.loopback.listeners import listen_on_loopback
from bezel_localcloud.http.serving import HttpServer


class ServedPort:
    """The port.

    Attributes:
        seen: (method, host, raw path, query, path, body) of each request.
        errors: What the event loop reported.
    """

    def __init__(self, certificate=None):
        self.seen, self.errors = [], []
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda _, context: self.errors.append(context))
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        listener = listen_on_loopback()
        self.port = listener.getsockname()[1]
        self.server = HttpServer(self.app, listener, lambda _: 1 << 20, certificate)
        self.call(self.server.start())

    def call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    async def app(self, scope, receive, send):
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                host = dict(scope["headers"])[b"host"].decode()
                self.seen.append((scope["method"], host, scope["raw_path"], scope["query_string"], scope["path"], body))
                break
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    def close(self):
        self.call(self.server.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
