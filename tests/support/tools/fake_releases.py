"""A forge's API of releases on a real socket, as GitHub and as Gitea answer it: their pages, uploads and assets."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from bezel.forge import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.forge.environment import Kind

TOKEN = "ghs_plantedTokenOfARelease0123456789"


@dataclass
class FakeReleases:
    """The releases of one repository, the newest first.

    Attributes:
        kind: "github" or "gitea".
        releases: As the API shows them.
        contents: Id of an asset -> its content.
        refuses: Name of a file whose upload fails.
        address: Of the server.
    """

    kind: Kind
    releases: list[dict[str, Any]] = field(default_factory=list)
    contents: dict[int, bytes] = field(default_factory=dict)
    refuses: str = ""
    address: str = ""

    @property
    def facts(self) -> Facts:
        """What a run on this forge knows."""
        api = self.address + ("/api/v1" if self.kind == "gitea" else "/api/v3")
        return Facts(self.kind, api, self.address, "acme/bezel", TOKEN)

    def add(self, tag: str, assets: dict[str, bytes], *, draft: bool = False) -> dict[str, Any]:
        """A release that somebody made."""
        number = 1 + max([release["id"] for release in self.releases], default=0)
        upload = f"{self.address}/upload/{number}" + ("{?name,label}" if self.kind == "github" else "")
        release = {"id": number, "tag_name": tag, "draft": draft, "assets": [], "upload_url": upload}
        self.releases.insert(0, release | {"html_url": f"{self.address}/acme/bezel/releases/{tag}"})
        for name, content in assets.items():
            self.upload(number, name, content)
        return self.releases[0]

    def upload(self, number: int, name: str, content: bytes) -> dict[str, Any]:
        """Add an asset to a release."""
        key = len(self.contents) + 1
        self.contents[key] = content
        page = {"browser_download_url": f"{self.address}/files/{key}"} if self.kind == "gitea" else {}
        asset = {"name": name, **(page or {"url": f"{self.address}/api/v3/assets/{key}", "browser_download_url": ""})}
        self.find(number)["assets"].append(asset)
        return asset

    def find(self, number: int) -> dict[str, Any]:
        """The release of an id."""
        return next(release for release in self.releases if release["id"] == number)

    def answer(self, method: str, url: str, accept: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to a request."""
        parts = urlsplit(url)
        last = parts.path.rpartition("/")[2]
        if "/files/" in parts.path or "/assets/" in parts.path:
            asset = self.contents[int(last)]
            return 200, asset if accept == "application/octet-stream" else b'{"name": "its description"}'
        if "/upload/" in parts.path:
            name = parse_qs(parts.query)["name"][0]
            return (
                (507, b"") if name == self.refuses else (201, json.dumps(self.upload(int(last), name, body)).encode())
            )
        if method == "POST":
            values = json.loads(body)
            release = self.add(values.pop("tag_name"), {}) | values
            self.releases[0] = release
            return 201, json.dumps(release).encode()
        if method == "GET":
            return 200, json.dumps(self.releases).encode()
        release = self.find(int(last))
        if method == "DELETE":
            self.releases.remove(release)
            return 204, b""
        release |= json.loads(body)
        return 200, json.dumps(release).encode()


@contextmanager
def fake_releases(kind: Kind) -> Iterator[FakeReleases]:
    """A running forge without releases."""
    forge = FakeReleases(kind)

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_known = self.headers["Authorization"] == f"token {TOKEN}"
            accept = self.headers["Accept"]
            status, content = forge.answer(self.command, self.path, accept, body) if is_known else (401, b"")
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    forge.address = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
