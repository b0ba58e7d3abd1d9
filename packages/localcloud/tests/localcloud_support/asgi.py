"""Requests straight to an ASGI application: thousands a second, for tests over whole tables."""

import asyncio
from urllib.parse import unquote

from localcloud_support.in_process import run


def answer_of(application, verb, target, token="", *, body=b"", headers=()):
    """Status and body of the answer.

    Args:
        application: The application.
        verb: GET, POST, ...
        target: Path and query, encoded.
        token: Access token, "" for none.
        body: Bytes of the body.
        headers: (name, value) pairs beside Host and Authorization.
    """
    path, _, query = target.partition("?")
    all_headers = [("host", "127.0.0.1:1"), *([("authorization", f"Bearer {token}")] if token else []), *headers]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": verb,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in all_headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 1),
    }
    sent, requests = [], [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if not requests:  # the client stays, as a streamed answer waits to learn
            await asyncio.Event().wait()
        return requests.pop()

    async def send(message):
        sent.append(message)

    async def main():
        async with asyncio.timeout(30):
            await application(scope, receive, send)

    run(main())
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])
