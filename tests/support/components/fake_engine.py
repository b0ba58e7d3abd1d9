"""An engine that only listens: it records what a program declares, under Pulumi's own mocks."""

from __future__ import annotations

import asyncio
import pickle
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc
import pulumi
from google.protobuf import json_format
from pulumi.runtime import mocks
from pulumi.runtime.rpc import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

DIGEST = "sha256:" + "0123456789abcdef" * 4
REVISION = "projects/acme-llm/locations/us-east4/services/chat/revisions/chat-00001-abc"
CREATED = REVISION.replace("00001", "00002")
OUTPUTS = {
    "gcp:cloudrunv2/service:Service": {
        "uri": "https://chat.example",
        "latestReadyRevision": REVISION,
        "latestCreatedRevision": CREATED,
        "trafficStatuses": [
            {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100},
            {"tag": "newest", "uri": "https://newest---chat.example"},
        ],
    },
    "gcp:storage/bucket:Bucket": {"url": "gs://made"},
    "gcp:compute/globalAddress:GlobalAddress": {"address": "203.0.113.10"},
    "gcp:certificatemanager/certificateMap:CertificateMap": {"name": "certificates-1a2b3c4"},
    "gcp:certificatemanager/dnsAuthorization:DnsAuthorization": {
        "dnsResourceRecords": [
            {"name": "_acme-challenge.llm.acme.example.", "type": "CNAME", "data": "1.authorize.example."}
        ]
    },
    "pulumi-python:dynamic/components:TpuRequest": {"asked": "bezel-moe#1", "state": "asked", "former_zones": []},
    "pulumi-python:dynamic/components:TpuNode": {
        "lease": "projects/acme-llm/locations/us-east5-a/queuedResources/bezel-moe#1",
        "zone": "us-east5-a",
        "state": "active",
        "address": "10.64.0.5",
        "ends_at": "2026-11-21T04:00:00Z",
        "cost": {"usd_per_hour": 5.4, "so_far_usd": 0.3, "at_end_usd": 21.6, "as_of": "2026-11-21T00:05:00Z"},
    },
}


@dataclass
class Declared:
    """One resource as the program declared it; inputs and outputs as on the wire."""

    type: str
    name: str
    urn: str
    parent: str
    inputs: dict[str, Any]
    dependencies: tuple[str, ...]
    timeouts: tuple[str, str, str]
    hooks: tuple[str, ...]
    deleted_first: bool
    outputs: dict[str, Any] | None = None
    protected: bool = False
    imported: str = ""
    top_aliases: tuple[str, ...] = ()
    """Names of its aliases that have no parent."""
    aliases: tuple[str, ...] = ()
    """Names of its other aliases."""


@dataclass
class Declarations:
    """All resources of one run, and the functions of providers that it has called."""

    all: list[Declared] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    result: Any = None

    def of(self, token: str) -> list[Declared]:
        """Those of one type, by the end of its token, sorted by name: the order of arrival is chance."""
        matches = [resource for resource in self.all if resource.type.endswith(token)]
        return sorted(matches, key=lambda resource: resource.name)

    def one(self, token: str) -> Declared:
        """The only one of a type."""
        (resource,) = self.of(token)
        return resource

    def by_name(self, name: str) -> Declared:
        """The one with that logical name."""
        (declared,) = [resource for resource in self.all if resource.name == name]
        return declared

    def waits_for(self, later: Declared, earlier: Declared) -> bool:
        """Whether the engine was told, straight or through others, that one needs the other."""
        by_urn = {resource.urn: resource for resource in self.all}
        seen, todo = set(), list(later.dependencies)
        while todo:
            urn = todo.pop()
            if urn not in seen and urn in by_urn:
                seen.add(urn)
                todo += by_urn[urn].dependencies
        return earlier.urn in seen

    def everything(self) -> str:
        """All that was declared, as one text to search."""
        return repr([(resource.name, resource.inputs, resource.outputs) for resource in self.all])


class _Refused(grpc.RpcError):
    """What the engine answers when a provider's function fails."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNKNOWN

    def details(self) -> str:
        return "invocation of f returned an error: 1 error occurred:\n\t* registry said: 404 Not Found\n\n"


class _Answers(pulumi.runtime.Mocks):
    def __init__(
        self, declarations: Declarations, *, preview: bool, digest: str | None, refused: str, state: Mapping[str, Any]
    ) -> None:
        self.declarations, self.preview, self.digest, self.refused = declarations, preview, digest, refused
        self.state = state

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if self.preview:
            return None, args.inputs
        return f"{args.name}-id", {**args.inputs, **OUTPUTS.get(args.typ, {})}

    def call(self, args: pulumi.runtime.MockCallArgs) -> dict[str, Any]:
        self.declarations.functions.append(args.token)
        if self.digest is None or args.token == self.refused:
            raise _Refused
        if args.token == "pulumi:pulumi:readStackResourceOutputs":
            return {**args.args, "outputs": self.state}
        if args.token == "gcp:organizations/getIAMPolicy:getIAMPolicy":
            return {"id": "44136709", "policyData": "{}"}
        return {"name": args.args["name"], "sha256Digest": self.digest, "id": self.digest}


class _Listener(mocks.MockMonitor):
    def __init__(self, answers: _Answers, declarations: Declarations) -> None:
        super().__init__(answers)
        self.declarations = declarations

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802
        answer = super().RegisterResource(request)
        self.declarations.all.append(
            Declared(
                type=request.type,
                name=request.name,
                urn=answer.urn,
                parent=request.parent,
                inputs=json_format.MessageToDict(request.object),
                dependencies=tuple(request.dependencies),
                timeouts=(request.customTimeouts.create, request.customTimeouts.update, request.customTimeouts.delete),
                hooks=tuple(request.hooks.on_error),
                deleted_first=request.deleteBeforeReplace,
                protected=request.protect,
                imported=request.importId,
                top_aliases=tuple(alias.spec.name for alias in request.aliases if alias.spec.noParent),
                aliases=tuple(each.spec.name for each in request.aliases if not each.spec.noParent),
            )
        )
        return answer

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802
        for declared in self.declarations.all:
            if declared.urn == request.urn:
                declared.outputs = json_format.MessageToDict(request.outputs)
        return super().RegisterResourceOutputs(request)


def declare(
    program: Callable[[], Any],
    *,
    preview: bool = False,
    digest: str | None = DIGEST,
    refused: str = "",
    state: Mapping[str, Any] | None = None,
) -> Declarations:
    """Run a program against the listening engine.

    Args:
        program: Declares resources; what it returns is the `result`.
        preview: Whether outputs stay unknown, as in the first preview of a stack.
        digest: What the registry answers; None: it does not know the tag.
        refused: A provider's function that fails.
        state: URN -> type and outputs of each resource that earlier deploys have left.
    """
    declarations = Declarations()
    answers = _Answers(declarations, preview=preview, digest=digest, refused=refused, state=state or {})

    @pulumi.runtime.test
    def run() -> None:
        declarations.result = program()

    def with_a_loop() -> None:
        # Pulumi takes the thread's loop and makes none.
        asyncio.set_event_loop(loop)
        loop.set_default_executor(_CallingExecutor(1))
        pulumi.runtime.set_mocks(
            answers, project="bezel", stack="test", preview=preview, monitor=_Listener(answers, declarations)
        )
        run()

    loop = asyncio.new_event_loop()
    # With each resource Pulumi notes the whole stack: a thread of its own has few frames, a test a hundred.
    with _closed_loops(), closing(loop), ThreadPoolExecutor(1) as pool, _short_traces(), _restored_pickler():
        pool.submit(with_a_loop).result()
    return declarations


class _CallingExecutor(ThreadPoolExecutor):
    """Makes at once each call of the engine, which answers at once: a thread costs more than the answer."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future = Future[Any]()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)
        return future


@contextmanager
def _short_traces() -> Iterator[None]:
    """Enough frames for Pulumi to find the line that declares a resource; each further one costs a look at a file."""
    before = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = 8
    try:
        yield
    finally:
        if before is None:
            del sys.tracebacklimit
        else:
            sys.tracebacklimit = before


class _KeptLoops(asyncio.DefaultEventLoopPolicy):
    """Keeps the loops that Pulumi makes in threads and leaves open, with three descriptors each."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: list[asyncio.AbstractEventLoop] = []

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        loop = super().new_event_loop()
        self.loops.append(loop)
        return loop


@contextmanager
def _closed_loops() -> Iterator[None]:
    before, policy = asyncio.get_event_loop_policy(), _KeptLoops()
    asyncio.set_event_loop_policy(policy)
    try:
        yield
    finally:
        asyncio.set_event_loop_policy(before)
        for loop in policy.loops:
            if not loop.is_running():
                loop.close()


@contextmanager
def _restored_pickler() -> Iterator[None]:
    """Undo what Pulumi leaves in `pickle`: a further wrapper for each dynamic resource, too deep after some hundred."""
    pickler: Any = pickle._Pickler
    before = pickler._batch_setitems, pickler.save_dict
    try:
        yield
    finally:
        pickler._batch_setitems, pickler.save_dict = before


def has_unknown(value: object) -> bool:
    """Whether anything in it is known only after the deploy."""
    return UNKNOWN in repr(value)
