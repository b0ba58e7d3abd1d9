"""A project of localcloud in this process behind a socket, for operations that ask Google about the whole project."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from bezel.operations.context import Context
from bezel_localcloud.routing.context import Point, Series
from localcloud_support.in_process import PARENT, Clock, Project
from tests.support.rest.fake_google import ACCESS_TOKEN, Answer, Call, Server, serving

ROOT = Path(__file__).parents[3]
PROJECT = PARENT.partition("/")[2]
PATHS = {
    "CLOUD_RUN_V2": "run/v2",
    "CLOUD_QUOTAS": "cloudquotas/v1",
    "MONITORING": "monitoring",
    "SECRET_MANAGER": "secretmanager/v1",
    "STORAGE": "storage/v1",
    "VERTEX_AI": "aiplatform/v1",
}


class OneProject:
    """A cloud with a clock that a test moves, what it was asked, and contexts that reach it.

    Attributes:
        answers: Answers in place of the cloud's own, by a part of the path.
    """

    def __init__(self, project: Project, server: Server, environ: dict[str, str]) -> None:
        self.project, self.server, self.environ = project, server, environ
        self.answers: dict[str, Answer] = {}
        self.said: list[str] = []
        self._one = threading.Lock()
        server.routes.append(self._answer)

    def _answer(self, call: Call) -> Answer:
        for part, answer in self.answers.items():
            if part in call.path:
                return answer
        with self._one:  # the store is that of one thread
            if call.query.get("alt") == "media":
                response = self.project.raw(call.method, f"{call.path}?alt=media")
                return Answer(response.status_code, text=response.text)
            response = self.project.call(call.method, call.path, call.json if call.body else None, **call.query)
        return Answer(response.status_code, text=response.text)

    def context(self) -> Context:
        """A new context, as a face makes one for each call."""
        return Context(ROOT, self.environ, clock=_clock(self.project.clock), show=self.said.append)

    def put(self, bucket: str, name: str, content: bytes, **metadata: str) -> None:
        """Write an object, and its bucket if it is missing."""
        self.project.call("POST", "/storage/v1/b", {"name": bucket}, project=PROJECT)
        path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(name, safe='')}"
        answer = self.project.raw("POST", path, content)
        assert answer.is_success, answer.text
        if metadata:
            path = f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}"
            self.project.ok(
                "PATCH", path, {"metadata": {key.replace("_", "-"): value for key, value in metadata.items()}}
            )

    @property
    def changing_calls(self) -> list[str]:
        """What was asked beyond looking."""
        return [f"{call.method} {call.path}" for call in self.server.calls if call.method != "GET"]

    def use(self, metric: str, place: str, amount: int, *, ago: float) -> None:
        """What Cloud Monitoring counted of a quota."""
        quota_use: Any = self.project.cloud.quota_use
        point = Point(self.project.clock.now() - ago, amount)
        quota_use._points[Series(metric, place)] = [point]  # a sample of its own needs a running service


def _clock(clock: Clock) -> Any:
    from bezel.leases.clock import PlatformClock

    return PlatformClock(now=clock.now)


@contextmanager
def one_project(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[OneProject]:
    """A project with the APIs that its operations ask enabled."""
    project = Project(folder)
    for api in ("cloudquotas", "secretmanager", "aiplatform"):
        project.cloud.store.put("api", f"{api}.googleapis.com", {"state": "ENABLED"})
    with serving() as server:
        environ = {f"GOOGLE_{name}_CUSTOM_ENDPOINT": f"{server.url}/{path}/" for name, path in PATHS.items()}
        environ |= {"GOOGLE_OAUTH_ACCESS_TOKEN": ACCESS_TOKEN, "GOOGLE_CLOUD_PROJECT": PROJECT}
        for name, value in environ.items():
            patch.setenv(name, value)
        yield OneProject(project, server, environ)
    project.close()
