"""What the tests of copies share: a stack's bucket on a localcloud, a hub, and one copy from one to the other."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx

from bezel.rest import Backoff
from bezel.weights.bucket import Bucket
from bezel.weights.copy import BucketSource, HubSource, Outcome, copy_model
from bezel.weights.hub import Hub, Repository
from bezel.weights.progress import Progress
from bezel.weights.retry import Watch
from bezel.weights.transfer import Journal, Transfer
from bezel_base.loopback.plain_http import NO_TLS
from bezel_localcloud import control
from tests.support.weights.fake_hub import TOKEN, FakeHub

if TYPE_CHECKING:
    from pathlib import Path

    from bezel_localcloud.core.paths import Endpoint

MODEL = "acme/tiny-model"
PIECE = 256 * 1024
ODD = "folder with spaces/ünïcode & 100%+#?.json"
FILES = {
    "config.json": b'{"architectures": []}',
    "tokenizer.json": b'{"version": "1.0"}',
    "model.safetensors.index.json": json.dumps(
        {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    ).encode(),
    "model-00001-of-00002.safetensors": bytes(range(256)) * 4096,  # four pieces
    "model-00002-of-00002.safetensors": b"\2" * (PIECE + 17),
    ODD: b"{}",
    "empty.txt": b"",
    "pytorch_model.bin": b"x" * 1000,
    "original/params.json": b"{}",
}
WANTED = {name: content for name, content in FILES.items() if name not in {"pytorch_model.bin", "original/params.json"}}
LARGE = "model-00001-of-00002.safetensors"


@dataclass
class Shelf:
    """A bucket of a localcloud and a folder for journals; `copy` is one run of a copy."""

    endpoint: Endpoint
    name: str
    folder: Path
    hub: FakeHub
    out: io.StringIO = field(default_factory=io.StringIO)

    watch: Watch | None = None

    def __post_init__(self) -> None:
        self.token = control.access_token(self.endpoint)
        headers = {"Authorization": f"Bearer {self.token}"}
        self.http = httpx.Client(
            base_url=self.endpoint.base, headers=headers, timeout=30, trust_env=False, verify=NO_TLS
        )

    def make(self, name: str = "", location: str = "US") -> None:
        body = {"name": name or self.name, "location": location}
        answer = self.http.post("/storage/v1/b", params={"project": "bezel-local"}, json=body)
        assert answer.status_code == 200, answer.text

    def remove(self, *buckets: str) -> None:
        """Delete buckets with all that is in them, as far as they are there."""
        for bucket in buckets:
            for row in self.http.get(f"/storage/v1/b/{bucket}/o").json().get("items", []):
                assert self.http.delete(f"/storage/v1/b/{bucket}/o/{quote(row['name'], safe='')}").is_success
            assert self.http.delete(f"/storage/v1/b/{bucket}").status_code in {204, 404}

    def copy(self, *, token: str = "", revision: str = "main", seconds: float = 60.0, model: str = MODEL) -> Outcome:
        watch, progress = Watch(seconds, Backoff(first=0.01, longest=0.02)), Progress(self.out)
        self.watch = watch
        hub, bucket = Hub(watch, lambda: token, {"HF_ENDPOINT": self.hub.base}), Bucket(self.name, watch)
        try:
            repository = Repository(model, revision)
            commit, files = hub.files(repository)
            transfer = Transfer(hub, repository, commit, bucket, Journal(self.folder), watch, progress, PIECE)
            return copy_model(HubSource(transfer, files), bucket, "m", watch=watch, progress=progress)
        finally:
            hub.close()
            bucket.close()

    def rewrite(self, source: str, folder: str = "m", bucket_class: type[Bucket] = Bucket) -> Outcome:
        watch, progress = Watch(60.0, Backoff(first=0.01, longest=0.02)), Progress(self.out)
        origin, bucket = Bucket(source, watch), bucket_class(self.name, watch)
        try:
            rewritten = BucketSource(origin, folder, bucket, Journal(self.folder), watch, progress)
            return copy_model(rewritten, bucket, folder, watch=watch, progress=progress)
        finally:
            origin.close()
            bucket.close()

    def put(self, path: str, content: bytes, bucket: str = "") -> None:
        query = {"uploadType": "media", "name": path}
        answer = self.http.post(f"/upload/storage/v1/b/{bucket or self.name}/o", params=query, content=content)
        assert answer.status_code == 200, answer.text

    def stored_objects(self, folder: str = "m") -> dict[str, bytes]:
        """Content of each visible object below a folder."""
        rows = self.http.get(f"/storage/v1/b/{self.name}/o", params={"prefix": f"{folder}/"}).json().get("items", [])
        names = [row["name"] for row in rows]
        return {name.removeprefix(f"{folder}/"): self.content(name) for name in names}

    def content(self, name: str) -> bytes:
        path = name.replace("%", "%25").replace("/", "%2F").replace("?", "%3F").replace("#", "%23")
        return self.http.get(f"/storage/v1/b/{self.name}/o/{path}", params={"alt": "media"}).content

    def generations(self) -> dict[str, str]:
        rows = self.http.get(f"/storage/v1/b/{self.name}/o", params={"prefix": "m/"}).json().get("items", [])
        return {row["name"]: row["generation"] for row in rows}

    def output(self) -> str:
        return self.out.getvalue()


def no_secret_in(text: str) -> bool:
    return TOKEN not in text and "upload_id" not in text
