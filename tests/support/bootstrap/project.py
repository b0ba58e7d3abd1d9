"""A project on a real socket, as far as the foundation looks at it before it declares anything."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.rest.fake_google import ACCESS_TOKEN, Answer, Call, Server, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

PROJECT, NUMBER = "acme-llm", "123456789012"
BUCKET = "acme-llm-pulumi-state"
SETTINGS: dict[str, Any] = {
    "region": "us-east4",
    "repository": "acme/llm",
    "repository_id": "4711",
    "billing_account": "012345-6789AB-CDEF01",
    "alert_email": "llm@acme.example",
}
POOL = f"projects/{PROJECT}/locations/global/workloadIdentityPools/bezel"
PROVIDER = f"{POOL}/providers/github"
APIS = ("RESOURCE_MANAGER", "KMS", "IAM_BETA", "MONITORING", "BILLING_BUDGETS", "STORAGE")


@dataclass
class FakeProject:
    """What there is; tests change it.

    Attributes:
        server: The server.
        resources: Path -> what a GET answers; a POST of `:undelete` makes it ACTIVE.
        hidden: Whether the project is hidden from the caller.
        refusal: Status of every answer, 0 for none.
        objects: Names of the objects in the bucket; None where there is no bucket.
        changes: Method and path of each request that is no GET.
    """

    server: Server
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    hidden: bool = False
    refusal: int = 0
    objects: list[str] | None = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)

    def route(self, call: Call) -> Answer:
        """The answer to any call."""
        if self.refusal:
            return _error(self.refusal)
        if call.path == f"/storage/b/{BUCKET}/o":
            names = [{"name": name} for name in self.objects or [] if name.startswith(call.query.get("prefix", ""))]
            return _error(404) if self.objects is None else Answer(json={"items": names})
        path = call.path.partition("/")[2].partition("/")[2]
        if call.path == f"/resource_manager/projects/{PROJECT}":
            return _error(403) if self.hidden else Answer(json={"projectNumber": NUMBER, "projectId": PROJECT})
        if call.method != "GET":
            self.changes.append((call.method, path))
            self.resources[path.removesuffix(":undelete")]["state"] = "ACTIVE"
            return Answer(json={"name": "operations/1", "done": True})
        return Answer(json=self.resources[path]) if path in self.resources else _error(404)


@contextmanager
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProject]:
    """A fake project that this process's requests reach."""
    with serving() as server:
        fake = FakeProject(server)
        server.routes.append(fake.route)
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", ACCESS_TOKEN)
        for api in APIS:
            monkeypatch.setenv(f"GOOGLE_{api}_CUSTOM_ENDPOINT", f"{server.url}/{api.lower()}/")
        yield fake


def _error(status: int) -> Answer:
    return Answer(status, {"error": {"code": status, "message": "the refusal of this test", "status": "REFUSED"}})
