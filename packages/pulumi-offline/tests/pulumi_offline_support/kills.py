"""A provider that is killed at a request, and the one after it that continues: for tests of single kills and of all.

A boundary lies before each request reaches Google, and after Google has done what it asks for, before the answer
leaves. How many requests a call has is in the golden wire log, which test_requests.py holds.
"""

import json
from dataclasses import dataclass
from typing import Any, Self

import grpc
from pulumi.runtime.proto import provider_pb2 as pb

from bezel_pulumi_offline.lifecycle.values import decode, encode
from bezel_pulumi_offline.plugin.google_plugin import GooglePlugin, adoption_advice
from pulumi_offline_support.client import FailedError, ServedProvider, urn
from pulumi_offline_support.google import Boundary, FakeGoogle
from pulumi_offline_support.killable_process import Prefork
from pulumi_offline_support.programs import GOLDEN, PROGRAMS, STAYS, UPDATES, with_change

LOG: dict[str, Any] = json.loads(GOLDEN.read_text())
BOUNDARIES = [
    (kind, operation, number, side)
    for kind, life in LOG.items()
    for operation in ("create", "read", "update", "delete")
    for number in range(len(life.get(operation, ())))
    for side in ("before", "after")
]


@dataclass(frozen=True)
class Outcome:
    """How it went on after a kill.

    Attributes:
        taken_over: The repeated create was refused, and the resource had to be read into the state.
        left: What Google still has after the resource was deleted.
    """

    taken_over: bool
    left: list[str]


class Scene:
    """A Google, a source of providers that can be killed, and the provider that comes after them."""

    def __init__(self) -> None:
        self.google = FakeGoogle(polls=1)
        self.nursery = Prefork(self.google)

    def __enter__(self) -> Self:
        self.google.__enter__()
        self.nursery.__enter__()
        self.provider = ServedProvider(GooglePlugin(self.google.environment()), {"pollInterval": "2ms"})
        return self

    def __exit__(self, *error: object) -> None:
        self.provider.close()
        self.nursery.__exit__(*error)
        self.google.__exit__(*error)

    def kill(self, kind: str, operation: str, number: int, side: str) -> Outcome:
        """Kill a provider at a boundary of an operation, and see the next one go on to a resource that is gone."""
        self.google.clear()
        wanted = with_change(PROGRAMS[kind], *UPDATES[kind]) if operation == "update" else PROGRAMS[kind]
        resource_id, state = ("", {}) if operation == "create" else self.provider.create(kind, PROGRAMS[kind])
        self._die(self._request(operation, kind, resource_id, state, wanted), operation, Boundary(number, side))
        taken_over = False
        if operation == "create":
            resource_id, state, taken_over = self._create_again(kind, wanted)
        elif operation == "update":
            state = self._update_again(kind, resource_id, state, wanted)
        if operation != "delete":
            state = self._read_settled(kind, resource_id, state, wanted)
        self.provider.delete(kind, resource_id, state)
        if kind in STAYS:
            return Outcome(taken_over, [])
        assert self.provider.read(kind, resource_id, state).id == "", "it is gone"
        return Outcome(taken_over, self.google.remains())

    def _die(self, request: Any, operation: str, boundary: Boundary) -> None:
        self.google.hold_at(boundary)
        victim = self.nursery.start()
        call = getattr(victim.stub, operation.capitalize()).future(request)
        assert boundary.reached.wait(60), "the call never came to this request"
        victim.kill()
        assert isinstance(call.exception(60), grpc.RpcError), "no response to the engine"
        boundary.dead.set()
        self.google.boundary = None
        victim.close()

    def _request(
        self, operation: str, kind: str, resource_id: str, state: dict[str, Any], wanted: dict[str, Any]
    ) -> Any:
        news, olds, where = encode(self.provider.inputs(kind, wanted)), encode(state), urn(kind)
        match operation:
            case "create":
                return pb.CreateRequest(urn=where, properties=news)
            case "read":
                return pb.ReadRequest(id=resource_id, urn=where, properties=olds, inputs=news)
            case "update":
                return pb.UpdateRequest(id=resource_id, urn=where, olds=olds, news=news)
        return pb.DeleteRequest(id=resource_id, urn=where, properties=olds)

    def _create_again(self, kind: str, wanted: dict[str, Any]) -> tuple[str, dict[str, Any], bool]:
        """Create again; where that is refused, read what is there by the id that follows from the inputs."""
        try:
            return *self.provider.create(kind, wanted), False
        except FailedError as error:
            refusal_text = error.text
        # A part of another resource's body has no create of its own that Google could refuse, and a role's name is read
        # before it is made.
        refusals = ("googleapi: Error 409: ", "existing object already found", "already exists and must be imported")
        assert any(refusal in refusal_text for refusal in refusals)
        assert refusal_text.endswith(adoption_advice(urn(kind))), "the refusal names the repair"
        resource_id = LOG[kind]["state"]["id"]
        state = decode(self.provider.read(kind, resource_id).properties)
        assert not self.provider.diff(kind, resource_id, state, wanted).replaces
        return resource_id, self.provider.update(kind, resource_id, state, wanted), True

    def _update_again(
        self, kind: str, resource_id: str, state: dict[str, Any], wanted: dict[str, Any]
    ) -> dict[str, Any]:
        """Update again; the state still says what was there before, and a refresh finds an update at most."""
        actual = decode(self.provider.read(kind, resource_id, state, self.provider.inputs(kind, wanted)).properties)
        assert not self.provider.diff(kind, resource_id, actual, wanted).replaces
        difference = self.provider.diff(kind, resource_id, state, wanted)
        assert UPDATES[kind][0].split(".")[0] in difference.diffs
        assert not difference.replaces
        return self.provider.update(kind, resource_id, state, wanted)

    def _read_settled(
        self, kind: str, resource_id: str, state: dict[str, Any], wanted: dict[str, Any]
    ) -> dict[str, Any]:
        """The resource is there as it was wanted."""
        answer_of_read = self.provider.read(kind, resource_id, state, self.provider.inputs(kind, wanted))
        assert answer_of_read.id == resource_id
        properties = decode(answer_of_read.properties)
        answer = self.provider.diff(kind, resource_id, properties, wanted)
        assert answer.changes == pb.DiffResponse.DIFF_NONE, answer
        return properties
