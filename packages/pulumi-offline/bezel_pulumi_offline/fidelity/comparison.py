"""Comparison of the stand-in with recordings: each recorded call is repeated, and every exchange set beside ours.

Leaves out reading the recordings (`recordings`), the two ends of the wire (`replay`) and which differences are known
(`explanations`).
"""

from collections.abc import Collection, Iterator
from concurrent import futures
from typing import Any, Self

from google.protobuf import json_format

from bezel_base.errors import Problem
from bezel_pulumi_offline.fidelity.explanations import Compared
from bezel_pulumi_offline.fidelity.recordings import PROVIDER_CALLS, Recordings, RecordingsError, short
from bezel_pulumi_offline.fidelity.replay import ABSENT, Replay, StandIn, answer_of, differences, distinct, fold
from bezel_pulumi_offline.resources import TYPES

OPERATIONS = {"create": "create", "refresh": "read", "update": "update", "destroy": "delete", "preview": None}


class Comparison:
    """The recordings of one folder against one stand-in; as a context manager it ends both servers."""

    def __init__(self, recordings: Recordings, without_life: Collection[str] = ()) -> None:
        """Compare with recordings.

        Args:
            recordings: The recordings.
            without_life: Types of which no life is recorded, so that their failures cannot be repeated.
        """
        self.recordings, self.without_life = recordings, without_life
        self.states = recordings.states
        self.replay = Replay()
        self.stand_in = StandIn(self.replay.start(), recordings.place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stand_in.stop()
        self.replay.stop()

    def everything(self) -> Iterator[Compared]:
        """Every recording that concerns a type of the table or the provider itself."""
        for name in sorted(self.states):
            yield from self.lives(name)
        for (method, phase), recording in self.recordings.provider.items():
            yield from self.provider(method, phase, recording)
        for name, recording in self.recordings.faults.items():
            yield from self.fault(name, recording)

    def lives(self, name: str) -> Iterator[Compared]:
        """The recorded life cycles of the resources of a type: each call, and the requests of each operation."""
        states = self.states[name]
        for phase, operation in OPERATIONS.items():
            self.replay.expect(self.recordings.exchanges.get((name, operation or ""), []))
            calls = [(name, call) for state in states for call in state["calls"] if call["phase"] == phase]
            with futures.ThreadPoolExecutor(max(1, len(states))) as pool:
                yield from pool.map(self._call, calls) if len(states) > 1 else map(self._call, calls)
            if self.replay.exchanges:
                yield from self._requests(name, str(operation), self.replay.exchanges, single=len(states) == 1)

    def _call(self, named: tuple[str, dict[str, Any]]) -> Compared:
        name, call = named
        actual = self.stand_in.call(call["rpc"], call["request"])
        what = f"{call['phase']} {call['rpc']}"
        return Compared("calls", name, what, list(differences(call["response"] or {}, actual)))

    def _requests(
        self, name: str, what: str, recorded: list[dict[str, Any]], *, single: bool = True
    ) -> Iterator[Compared]:
        shape = fold if single else distinct
        expected, actual = shape(recorded), shape(self.replay.asked)
        for index in range(max(len(expected), len(actual))):
            left = expected[index] if index < len(expected) else ABSENT
            right = actual[index] if index < len(actual) else ABSENT
            yield Compared("requests", name, what, list(differences(left, right, f"[{index}]")))

    def provider(self, method: str, phase: str, recording: Any) -> Iterator[Compared]:
        """A call before there are resources, or the diffs of an unchanged preview."""
        if method in PROVIDER_CALLS:
            actual = self.stand_in.call(method, recording["request"])
            errors = recording["errors"]
            expected = {"error": errors[0], "kept": ""} if errors else recording["response"]
            yield Compared("calls", "the provider itself", f"{phase} {method}", list(differences(expected, actual)))
        for item in recording if method == "Diff" else ():
            token, _, resource = item["urn"].partition("::")
            if token in TYPES:
                request = self._refresh_request(token, resource)
                recorded, actual = item["response"], self.stand_in.call("Diff", request)
                if "olds" not in request:  # a resource without values: only what its type says can be compared
                    recorded, actual = ({"stables": response.get("stables")} for response in (recorded, actual))
                differing = list(differences(recorded, actual))
                yield Compared("calls", short(token), "unchanged preview Diff", differing)

    def _refresh_request(self, token: str, resource: str) -> dict[str, Any]:
        """The request of a preview's diff, taken from a recorded refresh; without one only the type is known."""
        for state in self.states[short(token)]:
            if state["name"] == resource:
                calls = [call for call in state["calls"] if (call["phase"], call["rpc"]) == ("refresh", "Diff")]
                if calls:
                    return dict(calls[0]["request"])
        return {"urn": f"urn:pulumi:a::b::{token}::{resource}"}

    def fault(self, name: str, recording: dict[str, Any]) -> Iterator[Compared]:
        """A refused create, a failed operation with the run after it, or an import."""
        for call in [*recording.get("rpc", ()), *recording.get("rpc_failed_update", ())]:
            token = (call.get("urn") or call["request"]["urn"]).split("::")[2]
            if token in TYPES and "request" in call:
                yield self._compare_import(token, name, call)
            elif token in TYPES and (self.states.get(short(token)) or short(token) not in self.without_life):
                # The recording covers both runs; the second one reads what the failed one has sent, once an update.
                later = sum(other["rpc"] == "Update" for other in recording.get("rpc_next_up", ()))
                yield from self._compare_failure(short(token), name, recording["http"], call, later)
        yield from self._tried_again(name, recording)
        for call in recording.get("rpc_next_up", ()):
            resource = short(call["urn"].split("::")[2])
            request = {
                **self._recorded_request(resource, call["rpc"]),
                "olds": json_format.MessageToDict(self.stand_in.left.properties),
            }
            self.replay.asked = []
            actual = self.stand_in.call(call["rpc"], request)
            yield Compared(
                "calls", resource, f"{name}, next up, {call['rpc']}", list(differences(call["response"], actual))
            )
            sent = [item["method"] for item in self.replay.asked]
            expected = ["GET"] if call["rpc"] == "Update" else []  # as facts about the recording say: one GET, no PATCH
            yield Compared("requests", resource, f"{name}, next up", list(differences(expected, sent)))

    def _tried_again(self, name: str, recording: dict[str, Any]) -> Iterator[Compared]:
        """A create that failed transiently at first."""
        for resource in self.states:
            life = self.recordings.exchanges.get((resource, "create"), [])
            first = _line(life[0]) if life else ""
            troubles = [item for item in recording.get("http", ()) if item["status"] >= 429 and _line(item) == first]
            creates = [
                call
                for state in self.states[resource]
                for call in state["calls"]
                if (call["phase"], call["rpc"]) == ("create", "Create")
            ]
            if troubles and len(creates) == 1:
                self.replay.expect([*troubles, *life])
                (expected,) = creates
                actual = self.stand_in.call("Create", expected["request"])
                what = f"{name}, tried again"
                yield Compared("calls", resource, f"{what} Create", list(differences(expected["response"], actual)))
                sent = [_line(item) for item in self.replay.asked if item["method"] == "POST"]
                yield Compared("requests", resource, what, list(differences([first] * (len(troubles) + 1), sent)))

    def _compare_import(self, token: str, name: str, call: dict[str, Any]) -> Compared:
        if call["rpc"] == "Read":
            answer = answer_of(TYPES[token].fields, call["response"]["properties"])
            path = f"/run/v2/{call['request']['id']}"
            self.replay.expect([{"method": "GET", "path": path, "status": 200, "answer": answer}])
        actual = self.stand_in.call(call["rpc"], call["request"])
        return Compared("calls", short(token), f"{name} {call['rpc']}", list(differences(call["response"], actual)))

    def _compare_failure(
        self, resource: str, name: str, exchanges: list[dict[str, Any]], call: dict[str, Any], later: int
    ) -> Iterator[Compared]:
        exchanges = [item for item in exchanges if _concerns(item, resource)]
        self.replay.expect(exchanges)
        request = self._recorded_request(resource, call["rpc"])
        actual, expected = self.stand_in.call(call["rpc"], request), call["response"]
        if call.get("errors"):
            resource_id = request.get("id") or f"{self.parent}/services/{request['name']}"
            expected = {"error": call["errors"][0], "kept": resource_id if "lro" in name else ""}
            actual["error"] = str(actual.get("error", "")).replace(request["urn"], call["urn"])
            yield from self._requests(resource, name, exchanges[: len(exchanges) - later])
        yield Compared("calls", resource, f"{name} {call['rpc']}", list(differences(expected, actual)))

    @property
    def parent(self) -> str:
        """What the services of the recordings are in."""
        place = self.recordings.place
        return f"projects/{place['project']}/locations/{place['region']}"

    def _recorded_request(self, resource: str, method: str) -> dict[str, Any]:
        """The request of the recorded life cycle: those of the failures, made by the same program, were not recorded.

        The failed resources had never been refreshed, so their old state is that of the create.
        """
        recorded = {(call["phase"], call["rpc"]): call for state in self.states[resource] for call in state["calls"]}
        needed = [("create", method)] if method == "Create" else [("update", method), ("create", "Create")]
        if missing := [f"{phase} {rpc}" for phase, rpc in needed if (phase, rpc) not in recorded]:
            consequence = f"a failure of {resource} is recorded without its {' and '.join(missing)}: nothing to repeat."
            repair = f"record the life of a {resource} as well, into state/{resource}.NAME.json."
            raise RecordingsError(Problem("faults", None, consequence, repair))
        if method == "Create":
            return dict(recorded["create", method]["request"])
        return {**recorded["update", method]["request"], "olds": recorded["create", "Create"]["response"]["properties"]}


def _line(exchange: dict[str, Any]) -> str:
    return f"{exchange['method']} {exchange['path']}"


def _concerns(exchange: dict[str, Any], resource: str) -> bool:
    """Whether an exchange of a recording that holds several resources is about this one."""
    end = {"secretmanager.Secret": "/secrets", "storage.Bucket": "/b"}.get(resource, "")
    return str(exchange["path"]).endswith(end)
