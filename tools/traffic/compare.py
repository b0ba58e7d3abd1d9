"""Compare the stand-in `gcp` provider with recordings of the real one: requests to Google and responses to the engine.

    python -m tools.traffic.compare FOLDER [--show TYPE] [--write]

FOLDER holds `http/` (exchanges with Google), `state/` (the engine's calls for each resource), `provider/` (its calls
before there are resources, and the diffs of an unchanged preview) and `faults/` (refused creates, failed operations, an
import). Every recorded call is repeated against the stand-in, with a server that returns the recorded responses.

traffic_explained.json must hold each difference with its evidence, and each type without a recording, and each entry
there must occur: otherwise the exit status is 1. `--write` writes the results into
tests/results/provider-{requests,calls}.json; without it the counts there must equal the present ones. Identical
requests in a row count once, as the real provider waits by reading.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from bezel_pulumi_offline.resources import TYPES
from tools.traffic.replay import ABSENT, Replay, StandIn, answered, differences, distinct, folded, load
from tools.traffic.tables import COMMAND, SECTIONS, Compared, Explanations, settled

OPERATIONS = {"create": "create", "refresh": "read", "update": "update", "destroy": "delete", "preview": None}
PROVIDER = ("Handshake", "GetPluginInfo", "CheckConfig", "Configure", "DiffConfig")


def short(token: str) -> str:
    """cloudrunv2.Service for gcp:cloudrunv2/service:Service."""
    return re.sub(r"^gcp:(\w+)/\w+:(\w+)$", r"\1.\2", token)


class Comparison:
    """The recordings of one folder against one stand-in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.replay = Replay()
        self.stand_in = StandIn(self.replay.start())
        self.states = {
            short(token): [load(path) for path in sorted((folder / "state").glob(f"{short(token)}.*.json"))]
            for token in TYPES
        }

    def everything(self) -> Iterator[Compared]:
        """Every recording that concerns a type of the table or the provider itself."""
        for name in sorted(self.states):
            yield from self.lives(name)
        for path in sorted((self.folder / "provider").glob("*.json")):
            yield from self.provider(path)
        for path in sorted((self.folder / "faults").glob("*.json")):
            yield from self.fault(path.stem, load(path))

    def lives(self, name: str) -> Iterator[Compared]:
        """The recorded life cycles of the resources of a type: each call, and the requests of each operation."""
        states = self.states[name]
        for phase, operation in OPERATIONS.items():
            file = self.folder / "http" / f"{name}.{operation}.lro-done.json"
            self.replay.expect(load(file)["exchanges"] if operation and file.exists() else [])
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
        shape = folded if single else distinct
        expected, actual = shape(recorded), shape(self.replay.asked)
        for index in range(max(len(expected), len(actual))):
            left = expected[index] if index < len(expected) else ABSENT
            right = actual[index] if index < len(actual) else ABSENT
            yield Compared("requests", name, what, list(differences(left, right, f"[{index}]")))

    def provider(self, path: Path) -> Iterator[Compared]:
        """A call before there are resources, or the diffs of an unchanged preview."""
        method, phase, _ = path.name.split(".")
        recording = load(path)
        if method in PROVIDER:
            actual = self.stand_in.call(method, recording["request"])
            errors = recording["errors"]
            expected = {"error": errors[0], "kept": ""} if errors else recording["response"]
            yield Compared("calls", "the provider itself", f"{phase} {method}", list(differences(expected, actual)))
        for item in recording if method == "Diff" else ():
            token, _, resource = item["urn"].partition("::")
            if token in TYPES:
                request = self._unchanged(token, resource)
                recorded, actual = item["response"], self.stand_in.call("Diff", request)
                if "olds" not in request:  # a resource without values: only what its type says can be compared
                    recorded, actual = ({"stables": response.get("stables")} for response in (recorded, actual))
                differing = list(differences(recorded, actual))
                yield Compared("calls", short(token), "unchanged preview Diff", differing)

    def _unchanged(self, token: str, resource: str) -> dict[str, Any]:
        """The request of a preview's diff, taken from a recorded refresh; without one only the type is known."""
        for state in self.states[short(token)]:
            if state["name"] == resource:
                return next(
                    dict(call["request"])
                    for call in state["calls"]
                    if call["phase"] == "refresh" and call["rpc"] == "Diff"
                )
        return {"urn": f"urn:pulumi:a::b::{token}::{resource}"}

    def fault(self, name: str, recording: dict[str, Any]) -> Iterator[Compared]:
        """A refused create, a failed operation with the run after it, or an import."""
        for call in [*recording.get("rpc", ()), *recording.get("rpc_failed_update", ())]:
            token = (call.get("urn") or call["request"]["urn"]).split("::")[2]
            if token in TYPES and "request" in call:
                yield self._imported(token, name, call)
            elif token in TYPES:
                # The recording covers both runs; the second one reads what the failed one has sent, once an update.
                later = sum(other["rpc"] == "Update" for other in recording.get("rpc_next_up", ()))
                yield from self._failed(short(token), name, recording["http"], call, later)
        yield from self._tried_again(name, recording)
        for call in recording.get("rpc_next_up", ()):
            resource = short(call["urn"].split("::")[2])
            request = {
                **self._asked(resource, call["rpc"]),
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
            file = self.folder / "http" / f"{resource}.create.lro-done.json"
            life = load(file)["exchanges"] if file.exists() else []
            first = _line(life[0]) if life else ""
            troubles = [item for item in recording.get("http", ()) if item["status"] >= 429 and _line(item) == first]
            if troubles:
                self.replay.expect([*troubles, *life])
                calls = [call for state in self.states[resource] for call in state["calls"]]
                (expected,) = (call for call in calls if (call["phase"], call["rpc"]) == ("create", "Create"))
                actual = self.stand_in.call("Create", expected["request"])
                what = f"{name}, tried again"
                yield Compared("calls", resource, f"{what} Create", list(differences(expected["response"], actual)))
                sent = [_line(item) for item in self.replay.asked if item["method"] == "POST"]
                yield Compared("requests", resource, what, list(differences([first] * (len(troubles) + 1), sent)))

    def _imported(self, token: str, name: str, call: dict[str, Any]) -> Compared:
        if call["rpc"] == "Read":
            answer = answered(TYPES[token].fields, call["response"]["properties"])
            path = f"/run/v2/{call['request']['id']}"
            self.replay.expect([{"method": "GET", "path": path, "status": 200, "answer": answer}])
        actual = self.stand_in.call(call["rpc"], call["request"])
        return Compared("calls", short(token), f"{name} {call['rpc']}", list(differences(call["response"], actual)))

    def _failed(
        self, resource: str, name: str, exchanges: list[dict[str, Any]], call: dict[str, Any], later: int
    ) -> Iterator[Compared]:
        exchanges = [item for item in exchanges if _concerns(item, resource)]
        self.replay.expect(exchanges)
        request = self._asked(resource, call["rpc"])
        actual, expected = self.stand_in.call(call["rpc"], request), call["response"]
        if call.get("errors"):
            resource_id = request.get("id") or f"projects/demo-project/locations/us-central1/services/{request['name']}"
            expected = {"error": call["errors"][0], "kept": resource_id if "lro" in name else ""}
            actual["error"] = str(actual.get("error", "")).replace(request["urn"], call["urn"])
            yield from self._requests(resource, name, exchanges[: len(exchanges) - later])
        yield Compared("calls", resource, f"{name} {call['rpc']}", list(differences(expected, actual)))

    def _asked(self, resource: str, method: str) -> dict[str, Any]:
        """The request of the recorded life cycle: those of the failures, made by the same program, were not recorded.

        The failed resources had never been refreshed, so their old state is that of the create.
        """
        recorded = {(call["phase"], call["rpc"]): call for state in self.states[resource] for call in state["calls"]}
        if method == "Create":
            return dict(recorded["create", method]["request"])
        return {**recorded["update", method]["request"], "olds": recorded["create", "Create"]["response"]["properties"]}


def _line(exchange: dict[str, Any]) -> str:
    return f"{exchange['method']} {exchange['path']}"


def _concerns(exchange: dict[str, Any], resource: str) -> bool:
    """Whether an exchange of a recording that holds several resources is about this one."""
    end = {"secretmanager.Secret": "/secrets", "storage.Bucket": "/b"}.get(resource, "")
    return str(exchange["path"]).endswith(end)


def main() -> int:
    """Print and judge the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", default="", help="print every comparison of the types that contain this")
    parser.add_argument("--write", action="store_true", help="write the tables of the results")
    arguments = parser.parse_args()
    explanations = Explanations(**json.loads((Path(__file__).parent / "explained.json").read_text()))
    compared = list(Comparison(arguments.folder).everything())
    wrong = []
    for item in compared:
        unexplained = explanations.explain(item)
        wrong += [f"{item.section} of {item.resource}, {item.what}: {difference}" for difference in unexplained]
        if arguments.show and arguments.show in item.resource:
            print(f"{item.section} of {item.resource}, {item.what}: {'different' if item.found else 'equal'}")
    known = {short(token) for token in TYPES}
    for problem, differing in {
        "unexplained difference": wrong,
        "explains nothing": explanations.unmet,
        "neither recorded nor explained, or both": explanations.unrecorded(known, compared),
    }.items():
        for line in differing:
            print(f"{problem}: {line}")
        wrong = [*wrong, *differing]
    counts = Counter((item.section, "different" if item.found else "equal") for item in compared)
    for (section, how), count in sorted(counts.items()):
        print(f"{section}: {count} {how}")
    stale = [] if wrong else [name for name in SECTIONS if not settled(name, compared, explanations, arguments.write)]
    if stale:
        print(f"{', '.join(stale)}: the committed tables say something else. Look at why, then: {COMMAND}")
    return 1 if wrong or stale else 0


if __name__ == "__main__":
    sys.exit(main())
