"""A metadata server and a bucket at the wire: tokens, objects with generations, requests counted."""

import asyncio
import json
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit


class FakeGoogle:
    """Both at one port of 127.0.0.1.

    Attributes:
        objects: Name -> (generation, content).
        requests: Method and path of each request.
        is_down: Whether every request is answered with 503.
        audiences: Audiences of identity tokens that were asked for.
    """

    def __init__(self) -> None:
        self.objects: dict[str, tuple[str, bytes]] = {}
        self.requests: list[str] = []
        self.is_down = False
        self.audiences: list[str] = []
        self._generation = 100

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.host = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def environment(self) -> dict[str, str]:
        endpoint = f"http://{self.host}/storage/v1/"
        return {
            "GCE_METADATA_HOST": self.host,
            "GOOGLE_STORAGE_CUSTOM_ENDPOINT": endpoint,
            "DOOR_BUCKET": "keys-bucket",
        }

    def put(self, name: str, content: bytes) -> None:
        self._generation += 1
        self.objects[name] = (str(self._generation), content)

    async def _serve(self, reader, writer):
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                line, *rest = head.rstrip().split("\r\n")
                headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, target, _ = line.split(" ")
                status, more, content = self._answer(method, urlsplit(target), headers, body)
                writer.write(b"HTTP/1.1 %d -\r\n%bcontent-length: %d\r\n\r\n%b" % (status, more, len(content), content))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, method, url, headers, body):
        self.requests.append(f"{method} {unquote(url.path)}")
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if self.is_down:
            return 503, b"", b""
        if url.path.startswith("/computeMetadata"):
            assert headers["metadata-flavor"] == "Google"
            if url.path.endswith("/token"):
                return 200, b"", json.dumps({"access_token": "access", "expires_in": 3599}).encode()
            self.audiences.append(query["audience"])
            return 200, b"", b"header.e30.%d" % len(self.audiences)
        assert headers["authorization"] == "Bearer access"
        if method == "POST":
            assert url.path == "/upload/storage/v1/b/keys-bucket/o"
            self.put(query["name"], body)
            return 200, b"", b"{}"
        if url.path == "/storage/v1/b/keys-bucket/o":
            items = [
                {"name": name, "generation": generation}
                for name, (generation, _) in self.objects.items()
                if name.startswith(query["prefix"])
            ]
            return 200, b"", json.dumps({"items": items}).encode()
        name = unquote(url.path.removeprefix("/storage/v1/b/keys-bucket/o/"))
        if name not in self.objects:
            return 404, b"", b"No such object: keys-bucket/keys.json"
        generation, content = self.objects[name]
        if query.get("ifGenerationNotMatch") == generation:
            return 304, b"", b""
        return 200, b"x-goog-generation: %b\r\n" % generation.encode(), content
