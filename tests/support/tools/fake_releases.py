"""A forge's API of releases on a real socket, as GitHub and as Gitea answer it: their pages, uploads and assets."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench_support.http_server import Answer, Call, serving
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

    def answer(self, call: Call) -> Answer:
        """The answer to a request."""
        last = call.path.rpartition("/")[2]
        if call.headers.get("authorization") != f"token {TOKEN}":
            return Answer(401)
        if "/files/" in call.path or "/assets/" in call.path:
            is_content = call.headers["accept"] == "application/octet-stream"
            return Answer(chunks=[self.contents[int(last)]]) if is_content else Answer(json={"name": "its description"})
        if "/upload/" in call.path:
            name = call.query["name"]
            return Answer(507) if name == self.refuses else Answer(201, self.upload(int(last), name, call.body))
        if call.method == "POST":
            release = self.add(call.json["tag_name"], {}) | call.json
            self.releases[0] = release
            return Answer(201, release)
        if call.method == "GET":
            return Answer(json=self.releases)
        release = self.find(int(last))
        if call.method == "DELETE":
            self.releases.remove(release)
            return Answer(204)
        release |= call.json
        return Answer(json=release)


@contextmanager
def fake_releases(kind: Kind) -> Iterator[FakeReleases]:
    """A running forge without releases."""
    forge = FakeReleases(kind)

    with serving() as server:
        server.routes.append(forge.answer)
        forge.address = server.url
        yield forge
