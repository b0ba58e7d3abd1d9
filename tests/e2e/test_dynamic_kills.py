"""Dynamic providers killed at each HTTP call that they send: a repetition by another process answers the same."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from pulumi.dynamic import ResourceProvider
from pulumi.runtime.proto import provider_pb2

from bezel_components.providers.model_files import ModelFilesProvider
from bezel_smoke.benchmark import ShortBenchmarkProvider
from bezel_smoke.health import HealthCheckProvider
from tests.support.e2e.killable_providers import KillableProvider, prefork
from tests.support.record_results import check_results
from tests.support.rest.fake_google import Answer, Call, Server, serving
from tests.support.smoke.fake_service import MODEL, SERVICE, Project
from tests.support.smoke.plugin import Plugin, bag, engine_listening, plain, plugin_running

REVISION = "llm-00001-abc"
FILES = ("config.json", "model-00001-of-00001.safetensors", "tokenizer.json")
OPERATIONS = ("check", "create", "read", "update", "delete")
WAIT = 60
# Calls that change nothing, although they are a POST: getting tokens, reading the log, inference.
READING_POSTS = frozenset(
    {
        "POST /token",
        "POST /logging/v2/entries:list",
        "POST /v1/completions",
        "POST /v1/chat/completions",
        "POST /invocations",
        "POST /tokenize",
    }
)


class Gate:
    """Stands in front of the servers, records their calls, and holds the one with a given number until its release."""

    def __init__(self, *servers: Server) -> None:
        self._lock = threading.Lock()
        self.calls: list[str] = []
        self._stops, self._when = 0, ""
        self.reached, self.released = threading.Event(), threading.Event()
        for server in servers:
            others = [*server.routes]
            server.routes[:] = [lambda call, others=others: self._pass(call, others)]

    def reset(self, stops: int = 0, when: str = "") -> None:
        """Count anew, and stop the call of this number (1 is the first, 0 stops none)."""
        self.released.set()
        with self._lock:
            self.calls, self._stops, self._when = [], stops, when
            self.reached, self.released = threading.Event(), threading.Event()

    def _pass(self, call: Call, others: list[Callable[[Call], Answer | None]]) -> Answer | None:
        with self._lock:
            self.calls.append(f"{call.method} {call.path}")
            stopped, reached, released = len(self.calls) == self._stops, self.reached, self.released
        if stopped and self._when == "before":
            reached.set()
            released.wait(WAIT)
            return Answer(reset=True)  # its caller is dead: it was never handled
        answer = next((answered for route in others if (answered := route(call)) is not None), None)
        if stopped:
            reached.set()
            released.wait(WAIT)
        return answer


@dataclass(frozen=True)
class World:
    """Google, the service and the bucket on real sockets, and what a plugin needs to find them."""

    project: Project
    gate: Gate
    environment: dict[str, str]

    def inputs(self, kind: str) -> dict[str, Any]:
        load = {"requests": 2, "concurrency": 1, "prompt_tokens": 20, "output_tokens": 6, "seed": 1, "simulated": False}
        smoke = {"url": self.project.vllm.url, "revision": REVISION, "served_model": MODEL, "public": False}
        return {
            "ModelFiles": {"bucket": "acme", "path": "m", "source": "google/m", "bucket_url": "gs://acme"},
            "HealthCheck": smoke | {"service": SERVICE, "speculative": False, "deadline_seconds": 30},
            "ShortBenchmark": smoke | load | {"deadline_seconds": 30},
        }[kind]


PROVIDERS: dict[str, ResourceProvider] = {
    "ModelFiles": ModelFilesProvider(),
    "HealthCheck": HealthCheckProvider(),
    "ShortBenchmark": ShortBenchmarkProvider(),
}


def bucket(call: Call) -> Answer | None:
    """Cloud Storage's list of the model's files, one a page."""
    if call.path != "/storage/v1/b/acme/o":
        return None
    page = int(call.query.get("pageToken") or 0)
    more = {"nextPageToken": str(page + 1)} if page + 1 < len(FILES) else {}
    return Answer(json={"items": [{"name": f"m/{FILES[page]}", "size": "7"}]} | more)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serving() as google, serving() as vllm:
        project = Project(google, vllm)
        google.routes.append(bucket)
        environment = project.environment(tmp_path_factory.mktemp("key"))
        environment["GOOGLE_STORAGE_CUSTOM_ENDPOINT"] = f"{google.url}/storage/v1/"
        yield World(project, Gate(google, vllm), environment)


@pytest.fixture(scope="module")
def survivor(world: World) -> Iterator[Plugin]:
    """The plugin of the runs that nobody disturbs."""
    with plugin_running(world.environment) as running:
        yield running


def begin(plugin: Plugin | KillableProvider, kind: str, operation: str, inputs: dict[str, Any]) -> Any:
    """Begin an operation, and return the future of its answer."""
    props = bag(PROVIDERS[kind], inputs)
    requests = {
        "check": lambda: plugin.stub.Check.future(provider_pb2.CheckRequest(news=props)),
        "create": lambda: plugin.stub.Create.future(provider_pb2.CreateRequest(properties=props)),
        "read": lambda: plugin.stub.Read.future(provider_pb2.ReadRequest(id="x", properties=props)),
        "update": lambda: plugin.stub.Update.future(provider_pb2.UpdateRequest(id="x", olds=props, news=props)),
        "delete": lambda: plugin.stub.Delete.future(provider_pb2.DeleteRequest(id="x", properties=props)),
    }
    return requests[operation]()


def answer_content(kind: str, answer: Any) -> Any:
    """The fields of an answer that do not depend on the time."""
    if not hasattr(answer, "properties"):
        return str(answer)
    content = {name: value for name, value in plain(answer.properties).items() if name != "__provider"}
    if kind == "HealthCheck" and "verdict" in content:
        content["verdict"] = {name: check["ok"] for name, check in content["verdict"]["checks"].items()}
    if kind == "ShortBenchmark" and "figures" in content:
        content["figures"] = {
            name: content["figures"][name] for name in ("requests", "completed", "failed", "output_tokens")
        }
    return getattr(answer, "id", ""), content


@pytest.mark.long
def test_operation_repeated_after_a_kill_at_any_call_answers_the_same(world: World, survivor: Plugin) -> None:
    rows = []
    with engine_listening() as (_, address), prefork(world.environment, address) as starts:
        for kind in PROVIDERS:
            for operation in OPERATIONS:
                inputs = world.inputs(kind)
                world.gate.reset()
                # In a process of its own: one that has run before keeps its tokens, and makes fewer calls.
                with starts.victim() as fresh:
                    expected = answer_content(kind, begin(fresh, kind, operation, inputs).result(WAIT))
                calls = [*world.gate.calls]
                survived = 0
                for number in range(1, len(calls) + 1):
                    for when in ("before", "after"):
                        with starts.victim() as victim:
                            world.gate.reset(number, when)
                            running = begin(victim, kind, operation, inputs)
                            assert world.gate.reached.wait(WAIT), (kind, operation, number, calls)
                            victim.kill()
                            with pytest.raises(grpc.RpcError):
                                running.result(WAIT)
                        world.gate.reset()
                        again = answer_content(kind, begin(survivor, kind, operation, inputs).result(WAIT))
                        survived += again == expected
                rows.append([kind, operation, len(calls), 2 * len(calls), survived])
                # No call makes, changes or deletes anything, so that none can be left half done.
                assert {made for made in calls if not made.startswith("GET ")} <= READING_POSTS, calls
    table = {
        "title": "Kills of the dynamic providers, over their wire",
        "document": "reliability",
        "provider": "the program's own dynamic providers; none of Google's",
        "order": 22,
        "about": "Each operation of each dynamic resource is run once undisturbed and its HTTP calls are counted; then "
        "the provider's process is killed at each call, once before the call is handled and once after it with the "
        "answer withheld. Another process repeats the operation and has to answer what the undisturbed one did.",
        "command": ".venv/bin/pytest -q tests/e2e/test_dynamic_kills.py",
        "checked": "make test-long",
        "stamp": None,
        "columns": ["resource", "operation", "calls", "kill points", "survived"],
        "rows": rows,
        "notes": [],
    }
    assert [row for row in rows if row[3] != row[4]] == []
    assert sum(row[3] for row in rows) > 0
    check_results("kills-dynamic", table)
