"""A deployed stack with a door: its state in a folder, its bucket in a localcloud of this process behind a socket."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from bezel.leases.clock import PlatformClock
from bezel.operations.context import Context
from bezel_door.calls.routes import PROBE_PATH
from bezel_door.key_file import KEY_OBJECT, Key, read_keys
from bezel_door.usage_file import KeyUsage, UsageFile, usage_object, write_usage
from localcloud_support.in_process import Project
from tests.support.operations.deployed import NOW, Deployed, deployed_stack, live_service, service_resource, state_of
from tests.support.rest.fake_google import Answer, Call

BUCKET = "acme-dev-door"
_COMPONENT = "urn:pulumi:dev::bezel::bezel:services:VllmService$bezel:door:KeyDoor"


def door_resources(url: str, bucket: str = BUCKET) -> tuple[dict[str, Any], ...]:
    """The state's entries of a door: the component, its service and its bucket."""
    service, bucket_type = "gcp:cloudrunv2/service:Service", "gcp:storage/bucket:Bucket"
    service_id = "projects/acme/locations/us-east4/services/llm-door"
    parts = ((service, service_id, {"uri": url}), (bucket_type, bucket, {}))
    entries = [
        {
            "urn": f"{_COMPONENT}${type_}::door",
            "type": type_,
            "custom": True,
            "id": id_,
            "inputs": {},
            "outputs": outputs,
        }
        for type_, id_, outputs in parts
    ]
    return ({"urn": f"{_COMPONENT}::door", "type": "bezel:door:KeyDoor", "outputs": {"url": url}}, *entries)


@dataclass
class DoorCloud:
    """A stack `dev` with a door.

    Attributes:
        deployed: The stack; its state can be written anew.
        project: The cloud that has the bucket.
        now: Unix seconds, moved by hand.
        before_write: Called before each write of the keys; it may write first.
        after_write: Called after each write of the keys, whose answer is then lost.
        when_asked: Called when the door is asked whether it is ready.
        door_status: Its answer.
    """

    deployed: Deployed
    project: Project
    now: float = NOW
    before_write: list[Callable[[], None]] = field(default_factory=list)
    after_write: list[Callable[[], None]] = field(default_factory=list)
    when_asked: list[Callable[[], None]] = field(default_factory=list)
    door_status: int = 200
    _one: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, call: Call) -> Answer | None:
        """Answer a request to Cloud Storage, or to the door."""
        if call.path == PROBE_PATH:
            for write in self.when_asked:
                write()
            return Answer(self.door_status, text="")
        if not call.path.startswith(("/storage/", "/upload/")):
            return None
        if call.method == "POST" and self.before_write:
            self.before_write.pop(0)()
        with self._one:  # the store is that of one thread
            response = self.project.raw(call.method, f"{call.path}?{urlencode(call.query)}", call.body)
        if call.method == "POST" and self.after_write:
            self.after_write.pop(0)()
            return Answer(reset=True)
        headers = {name: value for name, value in response.headers.items() if name.startswith("x-goog-")}
        return Answer(response.status_code, text=response.text, headers=headers)

    def context(self, *, shows_secrets: bool = True) -> Context:
        """A new context, as a face makes one for each call."""
        environ = {**self.deployed.context.environ, "XDG_STATE_HOME": str(self.deployed.folder / "home")}
        clock = PlatformClock(now=lambda: self.now)
        show = self.deployed.context.show
        return Context(self.deployed.folder, environ, clock=clock, show=show, shows_secrets=shows_secrets)

    def put(self, name: str, content: bytes) -> None:
        """Write an object of the bucket."""
        with self._one:
            answer = self.project.raw(
                "POST", f"/upload/storage/v1/b/{BUCKET}/o?{urlencode({'uploadType': 'media', 'name': name})}", content
            )
        assert answer.is_success, answer.text

    def content(self) -> bytes:
        """The file of keys."""
        with self._one:
            answer = self.project.raw("GET", f"/storage/v1/b/{BUCKET}/o/{KEY_OBJECT}?alt=media")
        return bytes(answer.content)

    def time(self) -> datetime:
        """The present."""
        return datetime.fromtimestamp(self.now, UTC)

    def keys(self) -> dict[str, Key]:
        """The keys in the bucket."""
        return read_keys(self.content())

    def use(self, day: str, instance: str = "one", **by_key: KeyUsage) -> None:
        """Write what an instance of the door counted of a day."""
        self.put(usage_object(date.fromisoformat(day), instance), write_usage(UsageFile(by_key, {})))


@contextmanager
def door_cloud(folder: Path) -> Iterator[DoorCloud]:
    """A stack with a door that has no key yet."""
    project = Project(folder / "cloud")
    with deployed_stack(folder) as deployed:
        deployed.context.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"] = f"{deployed.server.url}/storage/v1/"  # type: ignore[index]
        cloud = DoorCloud(deployed, project)
        deployed.server.routes.insert(0, cloud.answer)
        project.ok("POST", "/storage/v1/b", {"name": BUCKET}, project="bezel-local")
        outputs = {"url": "https://llm.example", "model": "gemma-4-12b-it"}
        deployed.keep("dev", state_of(service_resource(), *door_resources(deployed.server.url), **outputs))
        deployed.live["projects/acme/locations/us-east4/services/llm"] = live_service()
        yield cloud
    project.close()
