"""A real HTTP server that answers like the Hugging Face hub: commits, trees, downloads that are sent on to storage.

Storage is the same server under its other name (localhost), as the hub's is another host: what is sent there is
recorded, so that a test can say that no token was.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import defaultdict
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMIT = "c" * 40
TOKEN = "hf_plantedPlantedPlanted0123"


class FakeHub:
    """Models and what goes wrong with them.

    Attributes:
        models: id -> path -> content.
        gated: ids that want TOKEN.
        forbidden: ids that no token opens.
        refused_tokens: tokens that are none of any account.
        commits: id -> its commit; COMMIT without one.
        endless: files whose content does not end, and ids whose list of files does not.
        loops: ids whose files are sent on for ever.
        faults: path of a file -> what happens to its next downloads: a status, or ("cut", BYTES), ("lie", CONTENT).
        busy: statuses for the next requests of the API.
        requests: (path, authorization) as they came.
        storage: (path, authorization, range) of what was sent on.
        held: set while downloads stop after their first bytes.
    """

    def __init__(self) -> None:
        self.models: dict[str, dict[str, bytes]] = {}
        self.gated: set[str] = set()
        self.forbidden: set[str] = set()
        self.refused_tokens: set[str] = set()
        self.commits: dict[str, str] = {}
        self.endless: set[str] = set()
        self.loops: set[str] = set()
        self.faults: dict[str, list] = defaultdict(list)
        self.busy: list[int] = []
        self.page = 2
        self.heeds_ranges = True
        self.requests: list[tuple[str, str]] = []
        self.storage: list[tuple[str, str, str]] = []
        self.held: threading.Event | None = None
        self.held_after = 0
        self.base = ""

    @property
    def bytes_of(self):
        return sum(len(content) for model in self.models.values() for content in model.values())

    def tree(self, files):
        rows = [{"type": "directory", "path": "some", "oid": "0" * 40, "size": 0}]
        for path, content in sorted(files.items()):
            row = {"type": "file", "path": path, "size": len(content), "oid": git_hash(content)}
            if path.endswith((".safetensors", ".bin")):
                row |= {"oid": "f" * 40, "lfs": {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}}
            rows.append(row)
        return rows


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _take_first(values):
    """The first of the values, which is gone then, or None; each is for one of the threads that answer."""
    try:
        return values.pop(0)
    except IndexError:
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer in two writes takes 40 ms
    hub: FakeHub

    def do_GET(self):
        hub, parts = self.hub, urlsplit(self.path)
        path, authorization = unquote(parts.path), self.headers.get("Authorization", "")
        if path.startswith("/storage/"):
            hub.storage.append((path, authorization, self.headers.get("Range", "")))
            return self._content(*path.removeprefix("/storage/").split("/", 2))
        hub.requests.append((path, authorization))
        if status := _take_first(hub.busy):
            return self._json(status, {"error": "busy"}, {"Retry-After": "0"})
        match = re.fullmatch(r"/(?:api/models/)?([^/]+/[^/]+)/(revision|tree|resolve)/([^/]+)(?:/(.*))?", path)
        model, kind, revision, file = match.groups()
        if refusal := self._refusal(model, revision, authorization):
            return self._json(*refusal)
        if kind == "revision":
            return self._json(200, {"id": model, "sha": hub.commits.get(model, COMMIT)})
        if kind == "tree":
            return self._tree(model, parts.query)
        if file not in hub.models[model]:
            return self._json(404, {"error": "no such entry"}, {"X-Error-Code": "EntryNotFound"})
        if model in hub.loops:
            return self._json(302, {}, {"Location": f"{hub.base}{parts.path}?again"})
        owner, _, name = model.partition("/")
        quoted = parts.path.partition(f"/resolve/{revision}/")[2]
        port = self.server.server_port
        return self._json(302, {}, {"Location": f"http://localhost:{port}/storage/{owner}/{name}/{quoted}"})

    def _refusal(self, model, revision, authorization):
        hub = self.hub
        if authorization.removeprefix("Bearer ") in hub.refused_tokens:
            return 401, {"error": "Invalid credentials in Authorization header"}, {}
        if model not in hub.models:
            return 401, {"error": "Invalid username or password."}, {"X-Error-Code": "RepoNotFound"}
        if model in hub.forbidden:
            return 403, {"error": "not on the list"}, {"X-Error-Code": "GatedRepo"}
        if model in hub.gated and authorization != f"Bearer {TOKEN}":
            return 401, {"error": "restricted"}, {"X-Error-Code": "GatedRepo"}
        if revision not in {"main", "v1", hub.commits.get(model, COMMIT)}:
            return 404, {"error": "Invalid rev id"}, {"X-Error-Code": "RevisionNotFound"}
        return None

    def _tree(self, model, query):
        if model in self.hub.endless:
            return self._endless(b"[" + b" " * 65536)
        rows = self.hub.tree(self.hub.models[model])
        start = int((re.search(r"cursor=(\d+)", query) or [0, 0])[1])
        end = start + self.hub.page
        commit = self.hub.commits.get(model, COMMIT)
        more = f"{self.hub.base}/api/models/{model}/tree/{commit}?recursive=true&cursor={end}"
        return self._json(200, rows[start:end], {"Link": f'<{more}>; rel="next"'} if end < len(rows) else {})

    def _content(self, owner, name, path):
        hub, content = self.hub, self.hub.models[f"{owner}/{name}"][path]
        fault = _take_first(hub.faults[path])
        if isinstance(fault, int):
            return self._json(fault, {"error": "fault"}, {"Retry-After": "0"})
        if fault and fault[0] == "lie":
            content = fault[1]
        if path in hub.endless:
            return self._endless(content)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")) if hub.heeds_ranges else None
        if asked and asked[2]:
            content = content[: int(asked[2]) + 1]
        begin = int(asked[1]) if asked else 0
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        end = begin + fault[1] if fault and fault[0] == "cut" else len(content)
        if hub.held and len(content) > hub.held_after:
            self.wfile.write(content[begin : hub.held_after])
            self.wfile.flush()
            hub.held.wait(60)
            begin = max(begin, hub.held_after)
        self.wfile.write(content[begin:end])
        self.close_connection = end < len(content)
        return None

    def _endless(self, piece):
        """Send the same piece until the client is gone."""
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                self.wfile.write(piece)
        except OSError:
            return

    def _json(self, status, body, headers=None):
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that was killed


@contextmanager
def serving() -> Iterator[FakeHub]:
    """A hub on a free port of this machine for as long as the block lasts."""
    hub = FakeHub()
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    hub.base = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        if hub.held:
            hub.held.set()
        server.shutdown()
        server.server_close()
        thread.join()
