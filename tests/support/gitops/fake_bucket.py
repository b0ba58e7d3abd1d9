"""Cloud Storage at the wire, as far as states need it: objects, generations, preconditions, lost answers."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import unquote

from bezel.engine.state.bucket import StateBucket
from bezel.rest import Credentials, GoogleClient
from tests.support.clock import Clock
from tests.support.rest.fake_google import Answer, Call, Server, serving

PLANTED = "planted-token"
_READ, _CREATE, _DELETE = "storage.objects.get", "storage.objects.create", "storage.objects.delete"


@dataclass
class FakeBucket:
    """The route of one bucket.

    Attributes:
        objects: Name -> content and generation.
        forbidden: Permissions that the caller lacks.
        before: Answers to give in place of acting on the next changes, in turn; None acts.
        lost: How many of the next changes are made and never answered.
        gate: Called with each request before it is served, outside the lock; may answer in its place.
        after: Called with each request once it was served, before it is answered.
    """

    server: Server
    name: str = "states"
    objects: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    before: list[Answer | None] = field(default_factory=list)
    lost: int = 0
    gate: Callable[[Call], Answer | None] | None = None
    after: Callable[[Call], None] | None = None
    page: int = 1000
    _generation: int = 1_700_000_000_000_000
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, call: Call) -> Answer | None:
        root = f"/storage/v1/b/{self.name}/o"
        if call.path.removeprefix("/upload").startswith("/storage/v1/b/") and f"/b/{self.name}/" not in call.path:
            return _error(404, "The specified bucket does not exist.", "notFound")
        if self.gate and (answer := self.gate(call)) is not None:
            return answer
        answer = self._serve(call, root)
        if self.after:
            self.after(call)
        return answer

    def _serve(self, call: Call, root: str) -> Answer | None:
        with self._lock:
            if call.method == "GET" and call.path == root:
                return self._list(call)
            if call.method == "GET" and call.path.startswith(f"{root}/"):
                return self._read(unquote(call.path.removeprefix(f"{root}/")))
            if (call.method, call.path) == ("POST", f"/upload{root}"):
                return self._change_with_faults(call, call.query["name"])
            if call.method == "DELETE":
                return self._change_with_faults(call, unquote(call.path.removeprefix(f"{root}/")))
        return None

    def _list(self, call: Call) -> Answer:
        names = sorted(name for name in self.objects if name.startswith(call.query.get("prefix", "")))
        begin = int(call.query.get("pageToken", 0))
        rows = [self._row(name) for name in names[begin : begin + self.page]]
        more = {"nextPageToken": str(begin + self.page)} if begin + self.page < len(names) else {}
        return Answer(json={"items": rows} | more if rows else {})

    def _row(self, name: str) -> dict[str, str]:
        # A generation of Cloud Storage is the time in microseconds.
        generation = self.objects[name][1]
        updated = datetime.fromtimestamp(generation / 1e6, UTC).isoformat(timespec="milliseconds")
        return {"name": name, "generation": str(generation), "updated": updated.replace("+00:00", "Z")}

    def _read(self, name: str) -> Answer:
        if _READ in self.forbidden:
            return _denied_answer(_READ)
        if name not in self.objects:
            return Answer(404, text=f"No such object: {self.name}/{name}")
        content, generation = self.objects[name]
        return Answer(text=content.decode(), headers={"x-goog-generation": str(generation)})

    def _change_with_faults(self, call: Call, name: str) -> Answer:
        if self.before and (answer := self.before.pop(0)) is not None:
            return answer
        answer = self._change(call, name)
        if self.lost and answer.status < 300:
            self.lost -= 1
            return Answer(reset=True)
        return answer

    def _change(self, call: Call, name: str) -> Answer:
        current = self.objects.get(name, (b"", 0))[1]
        needed = [_DELETE] if call.method == "DELETE" else [_CREATE, *([_DELETE] if current else [])]
        for permission in needed:
            if permission in self.forbidden:
                return _denied_answer(permission)
        if call.method == "DELETE" and not current:
            return _error(404, f"No such object: {self.name}/{name}", "notFound")
        if int(call.query["ifGenerationMatch"]) != current:
            text = "At least one of the pre-conditions you specified did not hold."
            return _error(412, text, "conditionNotMet")
        if call.method == "DELETE":
            del self.objects[name]
            return Answer(204)
        self._generation += 1
        self.objects[name] = (call.body, self._generation)
        return Answer(json={"name": name, "generation": str(self._generation)})

    def client(self, *, prefix: str = "", seconds: float = 20.0, token: str = PLANTED) -> StateBucket:
        """The bucket as a program sees it, without waits between attempts."""
        credentials = Credentials(environ={"GOOGLE_OAUTH_ACCESS_TOKEN": token})
        clock = Clock()
        client = GoogleClient(credentials, clock=clock, sleep=clock.sleep, deadline_seconds=seconds)
        return StateBucket(self.name, prefix, client, f"{self.server.url}/storage/v1/")


@contextmanager
def fake_bucket() -> Iterator[FakeBucket]:
    with serving() as server:
        bucket = FakeBucket(server)
        server.routes.append(bucket)
        yield bucket


def _denied_answer(permission: str) -> Answer:
    text = f"preview@demo.iam.gserviceaccount.com does not have {permission} access to the Google Cloud Storage object."
    return _error(403, text, "forbidden")


def _error(status: int, message: str, reason: str) -> Answer:
    return Answer(status, {"error": {"code": status, "message": message, "errors": [{"reason": reason}]}})
