"""localcloud killed at every write of every kind of API call; prints what each kill left, as JSON.

A process of its own, `write_kills.py FOLDER SHARE OF`, because it forks: each call runs in a child that kills itself
right before its n-th write, for every n there is, and at last after all of them. A write is a statement of SQLite that
is no question, or a change of a file or folder, as the interpreter's own hooks tell them. A second child then opens the
directory as a new daemon does.
"""

import asyncio
import itertools
import json
import os
import re
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from bezel_localcloud.cloud import Cloud
from bezel_localcloud.core.clock import InstanceTiming, PlatformClock
from bezel_localcloud.core.paths import DEPLOYER, PROJECT, Paths
from localcloud_support.in_process import Nodes
from tests.support.e2e.consistency import problems

PARENT = f"projects/{PROJECT}"
RUN = f"/run/v2/{PARENT}/locations/us-east4/services"
JOBS = f"/run/v2/{PARENT}/locations/us-east4/jobs"
SECRETS = f"/secretmanager/v1/{PARENT}/secrets"
ACCOUNTS = f"/iam/v1/{PARENT}/serviceAccounts"
REPOSITORIES = f"/artifactregistry/v1/{PARENT}/locations/us-east4/repositories"
UPLOAD = "/upload/storage/v1/b/kept/o"
RUNTIME = f"runtime@{PROJECT}.iam.gserviceaccount.com"
BINDING = {"role": "roles/viewer", "members": ["user:a@example.com"]}
VOLATILE = frozenset(
    {"etag", "generation", "observedGeneration", "uniqueId", "oauth2ClientId", "uid", "opened", "_content"}
)
FILE_EVENTS = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir"})


@dataclass(frozen=True)
class Request:
    """One API call."""

    method: str
    path: str
    body: Any = None
    query: dict[str, str] = field(default_factory=dict)


def _template(most: int) -> dict[str, Any]:
    container = {
        "image": f"us-east4-docker.pkg.dev/{PROJECT}/hub/vllm@sha256:{'0' * 64}",
        "ports": [{"containerPort": 8080}],
        "resources": {"limits": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}},
    }
    return {
        "containers": [container],
        "serviceAccount": RUNTIME,
        "nodeSelector": {"accelerator": "nvidia-l4"},
        "gpuZonalRedundancyDisabled": True,
        "maxInstanceRequestConcurrency": most,
        "scaling": {"maxInstanceCount": 1},
    }


def _task() -> dict[str, Any]:
    container = {"image": "docker.io/vllm/vllm-openai:v0.32.0"}
    return {"containers": [container], "serviceAccount": RUNTIME}


def _put(name: str, text: str) -> Request:
    return Request("POST", UPLOAD, text, {"uploadType": "media", "name": name})


# What is there before each call, so that it has something to change or to delete.
SETUP = (
    Request(
        "POST",
        f"/serviceusage/v1/{PARENT}/services:batchEnable",
        {"serviceIds": [f"{name}.googleapis.com" for name in ("run", "iam", "secretmanager", "artifactregistry")]},
    ),
    Request("POST", ACCOUNTS, {"accountId": "runtime", "serviceAccount": {}}),
    Request("POST", "/storage/v1/b", {"name": "kept", "location": "US"}, {"project": PROJECT}),
    Request("POST", "/storage/v1/b", {"name": "empty", "location": "US"}, {"project": PROJECT}),
    _put("there/one.txt", "what was there"),
    Request("POST", SECRETS, {"replication": {"automatic": {}}}, {"secretId": "kept"}),
    Request("POST", f"{SECRETS}/kept:addVersion", {"payload": {"data": "b25l"}}),
    Request("POST", f"{SECRETS}/kept:setIamPolicy", {"policy": {"bindings": [BINDING]}}),
    Request("POST", REPOSITORIES, {"format": "DOCKER"}, {"repositoryId": "kept"}),
    Request("POST", RUN, {"template": _template(4)}, {"serviceId": "kept"}),
    Request("POST", JOBS, {"template": {"taskCount": 2, "template": _task()}}, {"jobId": "kept"}),
)
CALLS = {
    "enable an API": Request("POST", f"/serviceusage/v1/{PARENT}/services/compute.googleapis.com:enable", {}),
    "disable an API": Request(
        "POST", f"/serviceusage/v1/{PARENT}/services/artifactregistry.googleapis.com:disable", {}
    ),
    "create an account": Request("POST", ACCOUNTS, {"accountId": "made-anew", "serviceAccount": {"displayName": "x"}}),
    "delete an account": Request("DELETE", f"{ACCOUNTS}/{RUNTIME}"),
    "create a bucket": Request("POST", "/storage/v1/b", {"name": "made", "location": "US"}, {"project": PROJECT}),
    "change a bucket": Request("PATCH", "/storage/v1/b/kept", {"labels": {"a": "b"}}),
    "delete a bucket": Request("DELETE", "/storage/v1/b/empty"),
    "set a bucket's policy": Request("PUT", "/storage/v1/b/kept/iam", {"bindings": [BINDING]}),
    "upload an object": _put("made/deep/one.txt", "new"),
    "upload over an object": _put("there/one.txt", "what is in its place"),
    "upload over an object, of the same size": _put("there/one.txt", "what has come!"),
    "upload a folder's mark": _put("folder/", ""),
    "delete an object": Request("DELETE", "/storage/v1/b/kept/o/there%2Fone.txt"),
    "create a secret": Request("POST", SECRETS, {"replication": {"automatic": {}}}, {"secretId": "made"}),
    "add a secret's version": Request("POST", f"{SECRETS}/kept:addVersion", {"payload": {"data": "dHdv"}}),
    "destroy a secret's version": Request("POST", f"{SECRETS}/kept/versions/1:destroy", {}),
    "delete a secret": Request("DELETE", f"{SECRETS}/kept"),
    "create a repository": Request("POST", REPOSITORIES, {"format": "DOCKER"}, {"repositoryId": "made"}),
    "delete a repository": Request("DELETE", f"{REPOSITORIES}/kept"),
    "create a service": Request("POST", RUN, {"template": _template(4)}, {"serviceId": "made"}),
    "deploy a revision": Request("PATCH", f"{RUN}/kept", {"template": _template(8)}),
    "change a service without a revision": Request(
        "PATCH", f"{RUN}/kept", {"template": _template(4), "labels": {"a": "b"}}
    ),
    "set a service's policy": Request("POST", f"{RUN}/kept:setIamPolicy", {"policy": {"bindings": [BINDING]}}),
    "delete a service": Request("DELETE", f"{RUN}/kept"),
    "create a job": Request("POST", JOBS, {"template": {"template": _task()}}, {"jobId": "made"}),
    "run a job": Request("POST", f"{JOBS}/kept:run", {}),
    "delete a job": Request("DELETE", f"{JOBS}/kept"),
}


def main(folder: Path, share: int, of: int) -> None:
    """Try every `of`-th call, from number `share` on; one JSON object a call."""
    base = folder / "base"
    _load(folder / "unused")
    _run_forked(lambda: _perform(base, SETUP, 0))
    before = _shape(base)
    for name, request in list(CALLS.items())[share::of]:
        done = _copy(base, folder / "done")
        assert not os.WIFSIGNALED(_run_forked(lambda at=done, call=request: _perform(at, [call], 0)))
        _run_forked(lambda at=done: _open(at).store.close())
        after = _shape(done)
        failures: list[str] = []
        ended = {"not at all": 0, "wholly": 0}
        assert before != after, f"{name} changes nothing"
        for number in itertools.count(1):
            place = _copy(base, folder / "killed")
            killed = os.WIFSIGNALED(_run_forked(lambda at=place, call=request, n=number: _perform(at, [call], n)))
            if not killed:
                break
            _run_forked(lambda at=place: _open(at).store.close())
            shape = _shape(place)
            failures += [f"write {number}: {problem}" for problem in problems(place)]
            if shape in (before, after):
                ended["not at all" if shape == before else "wholly"] += 1
            else:
                failures.append(f"write {number}: half done: {_differences(before, shape)}")
        print(json.dumps({"call": name, "writes": number - 1, "problems": failures} | ended), flush=True)


def _load(folder: Path) -> None:
    """Import the APIs and compile their paths, which each child would do anew."""
    cloud = _open(folder)
    cloud.application()
    cloud.store.close()


def _open(folder: Path) -> Cloud:
    """A cloud on the directory, mended as a daemon does when it starts."""
    layout = Paths(folder)
    layout.create()

    def no_containers(_container: Any) -> Any:
        raise OSError("no container is started here")

    cloud = Cloud(
        layout, PlatformClock(10_000), no_containers, InstanceTiming(10_000, 900, 0.5, 1.0), lambda _: Nodes()
    )
    cloud.base = "http://127.0.0.1:1"
    cloud.prepare()
    return cloud


def _perform(folder: Path, requests: Any, stop_at: int) -> None:
    """Make the calls; right before write number `stop_at` (counted from 1) nothing is left of this process."""
    cloud = _open(folder)
    token, _ = cloud.tokens.access_token(DEPLOYER, "https://www.googleapis.com/auth/cloud-platform")
    app, count = cloud.application(), itertools.count(1)

    def write(*_: Any) -> None:
        if next(count) == stop_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(sql: str) -> None:
        if not sql.lstrip().startswith(("SELECT", "PRAGMA", "--")):
            write()

    def event(name: str, arguments: tuple[Any, ...]) -> None:
        writes = name == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if (name in FILE_EVENTS or writes) and str(arguments[0]).startswith(str(folder)):
            write()

    async def call() -> None:
        transport = httpx.ASGITransport(app)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(transport=transport, base_url=cloud.base, headers=headers) as client:
            for request in requests:
                content = {"content": request.body} if isinstance(request.body, str) else {"json": request.body}
                answer = await client.request(request.method, request.path, params=request.query, **content)
                assert answer.is_success, (request, answer.text)
        write()
        os._exit(0)  # what goes on behind a service is not of the call

    if stop_at:
        cloud.store._connection.set_trace_callback(statement)
        sys.addaudithook(event)
    asyncio.run(call())


def _run_forked(work: Callable[[], Any]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - the child's end, whatever it is
            sys.stderr.write(f"{error!r}\n")
            sys.stderr.flush()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return status


def _copy(base: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(base, to)
    return to


def _shape(folder: Path) -> dict[str, str]:
    """Everything that a directory holds, without what a clock or a die makes differ."""
    contents: dict[str, str] = {}
    with sqlite3.connect(folder / "cloud.db") as database:
        for kind, name, body in database.execute("SELECT kind, name, body FROM resources WHERE kind != 'key'"):
            contents[f"{kind} {name}"] = _steady_body(body)
        for name, body in database.execute("SELECT name, body FROM policies"):
            contents[f"policy {name}"] = _steady_body(body)
        for name, data in database.execute("SELECT name, data FROM payloads"):
            contents[f"payload {name}"] = data.hex()
        contents |= {
            f"operation {_steady_body(body)}": "" for (body,) in database.execute("SELECT body FROM operations")
        }
    # The files' names are random, what is in them is not; a file that no row names would be left behind.
    for number, text in enumerate(sorted(path.read_text() for path in (folder / "contents").iterdir())):
        contents[f"content {number}"] = text
    for path in (folder / "objects").rglob("*"):
        contents[f"path {path.relative_to(folder)}"] = path.read_text() if path.is_file() else ""
    return {_steady(name): _steady(text) for name, text in sorted(contents.items())}


def _steady_body(body: str) -> str:
    """A body without its random and counting fields."""

    def without_volatile(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in pairs if key not in VOLATILE}

    return json.dumps(json.loads(body, object_pairs_hook=without_volatile))


def _steady(text: str) -> str:
    """The text without times, random ids and ports."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    text = re.sub(r"\n\d{20}\b", " GENERATION", text)
    text = re.sub(r"-\d{5}-[a-z0-9]{3}\b", "-REVISION", text)
    text = re.sub(r"kept-[a-z0-9]{5}(?![a-z0-9])", "kept-EXECUTION", text)
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", text)


def _differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    return sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
