"""The stand-in's load-balancing types against recordings of the published provider, each call and each request.

BEZEL_TRAFFIC names the folder of recordings; its `balancer/` holds lives of 40 resources of 16 types, single changes,
wrong values, imports. `KNOWN` names what differs, with the reason. Not compared: the requests of changes whose programs
the recordings leave out (http/*.update-NAME*). Drift and the engine's steps have tests of their own.
"""

import json
import re
from collections import Counter
from typing import Any

import pytest

from bezel_pulumi_offline.fidelity.replay import Replay, StandIn, differences, fold
from tests.support.standin_providers.balancer_recordings import TRAFFIC, exchanges, recording, short, states
from tests.support.standin_providers.recorded_changes import with_change, with_value

OPERATIONS = {"create": "create", "refresh": "read", "update": "update", "destroy": "delete"}
RPCS = {"create": "Create", "read": "Read", "update": "Update", "delete": "Delete"}
SEED = "a generated name: the same for one seed, but not the bridge's"
ONCE = "a value that the provider keeps until the first refresh"
# (type, what, path) -> why it differs; a type's path may be any of it ("*").
KNOWN = {
    ("compute.ManagedSslCertificate", "create Check", ".inputs.name"): SEED,
    ("compute.RegionNetworkEndpointGroup", "create Check", ".inputs.name"): SEED,
    ("compute.SecurityPolicy", "preview Create", ".properties.rules[1].rateLimitOptions.enforceOnKeyName"): (
        "the published provider shows an empty text for the one property of a rule that Google might complete"
    ),
    ("compute.SecurityPolicy", "update-preview Update", "*"): "a new member of a set shows what Google computes",
    ("dns.ManagedZone", "create Create", ".properties.reverseLookup"): ONCE,
    ("dns.ManagedZone", "update Update", ".properties.reverseLookup"): ONCE,
    ("dns.ManagedZone", "create Create", ".properties.privateVisibilityConfig.networks[0].networkUrl"): ONCE,
}
# (type, change's path) -> why the verdict, or its detail, differs.
KNOWN_CHANGES = {
    **{
        ("compute.BackendService", f"backends[0].{name}"): "Google completes it, and the set's hash leaves it out"
        for name in (
            *("maxInFlightRequests", "maxInFlightRequestsPerEndpoint", "maxInFlightRequestsPerInstance"),
            "maxUtilization",
        )
    },
    ("compute.URLMap", "hostRules[0].description"): "the set's hash leaves the description out",
}
# (type, start of a difference) -> why an import differs.
EMPTY = (
    "the provider imports an empty text, a false or a default as an input; the stand-in leaves out what says nothing"
)
KNOWN_IMPORTS = {
    ("certificatemanager.Certificate", ".inputs.scope"): EMPTY,
    ("compute.URLMap", ".inputs.defaultUrlRedirect.stripQuery"): EMPTY,
    ("dns.ManagedZone", ".inputs.cloudLoggingConfig"): EMPTY,
    ("dns.ManagedZone", ".inputs.description"): EMPTY,
    ("dns.ManagedZone", ".properties.reverseLookup"): ONCE,
    ("compute.SecurityPolicy", "{BASE}/compute/v1/"): "the one type that the provider imports by a link as well",
}
# Of another variant of the program than the first, or words in a value's place.
OTHER_PROGRAMS = {("matcher", "SECONDARY"), ("rules[0].match.config.srcIpRanges", '["11 ranges"]')}
WORDS = re.compile(r"[a-z0-9]+( [a-z]+)+$|neither$|none$|both$", re.IGNORECASE)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TRAFFIC, reason="BEZEL_TRAFFIC does not name a folder with recordings"),
]


def sorted_sets(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Requests in which the members of a backend service are in one order: the provider's follows from its address."""
    for request in requests:
        if isinstance(request["body"], dict) and "backends" in request["body"]:
            request["body"]["backends"].sort(key=lambda backend: str(backend["group"]))
    return requests


@pytest.mark.wide
def test_lives_are_as_recorded(replay: Replay, stand_in: StandIn) -> None:
    compared: Counter[str] = Counter()
    unexplained = []
    for name, state in states():
        for call in state["calls"]:
            operation = OPERATIONS.get(call["phase"], "")
            is_operation = call["rpc"] == RPCS.get(operation)
            for mode in ("lro-done", "lro-pending") if is_operation else ("lro-done",):
                expected = exchanges(name, state["id"], operation, mode) if is_operation else []
                # The record set of this file had been changed before.
                is_other = (name, operation, mode) == ("dns.RecordSet", "delete", "lro-pending")
                if is_operation and mode == "lro-pending" and (is_other or not expected):
                    continue
                replay.expect(expected)
                actual = stand_in.call(call["rpc"], call["request"])
                what = f"{call['phase']} {call['rpc']}"
                slips = list(differences(call["response"] or {}, actual)) if mode == "lro-done" else []
                unexplained += [f"{name} {what}: {each}" for each in slips if not is_known(name, what, each.path)]
                compared.update(["calls lro-done"] * (mode == "lro-done"))
                asked = json.loads(json.dumps(replay.asked).replace(stand_in.base, "{BASE}"))
                left, right = sorted_sets(fold(expected)), sorted_sets(fold(asked))
                unexplained += [f"{name} {what} {mode}: {each}" for each in differences(left, right)]
                compared.update([f"operations {mode}"] * is_operation)
    assert unexplained == []
    assert compared == NUMBERS


NUMBERS = Counter({"calls lro-done": 368, "operations lro-done": 142, "operations lro-pending": 45})


def is_known(name: str, what: str, path: str) -> bool:
    return (name, what, path) in KNOWN or (name, what, "*") in KNOWN


def programs(token: str) -> dict[str, Any]:
    cases = {case["case"]: case["news"] for case in recording("checks")[token] if "news" in case}
    return {**cases, "": cases["main"]}


def tokens() -> list[str]:
    return [token for token in recording("diffs") if "cloudrun" not in token]


def check(stand_in: StandIn, token: str, news: Any, olds: Any = None) -> dict[str, Any]:
    urn = f"urn:pulumi:d0::rec::{token}::thing"
    return stand_in.call("Check", {"urn": urn, "olds": olds or {}, "news": news, "name": "thing"})


def verdict(stand_in: StandIn, token: str, state: dict[str, Any], wanted: Any) -> tuple[str, dict[str, str]]:
    """The stand-in's verdict on a changed program, and its differences."""
    checked = check(stand_in, token, wanted, state["inputs"])
    if checked.get("failures"):
        return "refused", {}
    urn = f"urn:pulumi:d0::rec::{token}::thing"
    request = {"id": state["id"], "urn": urn, "olds": state["outputs"], "news": checked["inputs"]}
    answer = stand_in.call("Diff", {**request, "oldInputs": state["inputs"]})
    if "error" in answer:
        return "error", {}
    kind = "replace" if answer.get("replaces") else "update" if answer.get("diffs") else "same"
    kind += ", deleted first" if answer.get("deleteBeforeReplace") else ""
    return kind, {path: item.get("kind", "ADD") for path, item in answer.get("detailedDiff", {}).items()}


def test_changes_have_the_recorded_verdicts(stand_in: StandIn) -> None:
    lives = list(states())
    compared, unexplained = 0, []
    for token in tokens():
        for record in recording("diffs")[token]:
            change = record["change"]
            program = programs(token)[change.get("on", "")]
            wanted = with_change(program, change)
            if wanted is None or (short(token), change.get("path")) in KNOWN_CHANGES:
                continue
            (state,) = (
                each
                for name, each in lives
                if name == short(token)
                and each["calls"][0]["request"]
                and program in (each["calls"][0]["request"].get("news"), each["calls"][0]["request"].get("properties"))
            )
            expected = record["kind"] + (", deleted first" if record.get("deleteBeforeReplace") else "")
            kinds = {path: item.get("kind", "ADD") for path, item in record.get("detailedDiff", {}).items()}
            actual = verdict(stand_in, token, state, wanted)
            if actual != (expected, kinds if expected not in {"refused", "error"} else {}):
                unexplained.append((short(token), change, expected, kinds, actual))
            compared += 1
    assert unexplained == []
    assert compared == CHANGES


CHANGES = 697


def test_inputs_are_as_recorded(stand_in: StandIn) -> None:
    for token in tokens():
        for case in recording("checks")[token]:
            if "news" in case and case["case"] != "autoname":
                checked = check(stand_in, token, case["news"])
                assert (checked["inputs"], checked.get("failures", [])) == (case["inputs"], []), (token, case["case"])


@pytest.mark.parametrize(("name", "refused", "number"), [("refusals", True, 488), ("accepted", False, 682)])
def test_values_are_refused_and_taken_as_recorded(name: str, refused: bool, number: int, stand_in: StandIn) -> None:
    compared, unexplained = 0, []
    for token in tokens():
        program = programs(token)[""]
        for record in recording(name)[token]:
            path, value = (record["property"], record["value"]) if isinstance(record, dict) else record
            is_word = isinstance(value, str) and WORDS.match(value) and "BOGUS" not in value
            if (
                "+" in path
                or is_word
                or (path, value if isinstance(value, str) else json.dumps(value)) in OTHER_PROGRAMS
            ):
                continue
            wanted = with_value(program, path, "x" * 300 if value == "x*300" else value)
            if wanted is None:
                continue
            failures = check(stand_in, token, wanted).get("failures", [])
            compared += 1
            if bool(failures) is not refused:
                unexplained.append((short(token), path, value, failures))
    assert unexplained == []
    assert compared == number


def test_imports_are_as_recorded(replay: Replay, stand_in: StandIn) -> None:
    compared, unexplained = 0, []
    for token in tokens():
        for record in recording("imports")[token]:
            name, is_found = short(token), record["found"]
            expected = exchanges(name, record["id"], "read", "lro-done") if is_found else []
            replay.expect(expected)
            actual = stand_in.call("Read", {"id": record["given"], "urn": f"urn:pulumi:d0::rec::{token}::thing"})
            if is_found and not expected:
                continue  # what it reads is in no file of requests
            compared += 1
            if bool(actual.get("id")) is not is_found:
                unexplained.append((name, record["given"]))
            elif is_found:
                wanted = {key: record[key] for key in ("id", "inputs", "properties")}
                unexplained += [(name, str(each)) for each in differences(wanted, actual)]
    expected_slips = [
        (name, text)
        for name, text in unexplained
        for key in KNOWN_IMPORTS
        if key[0] == name and text.startswith(key[1])
    ]
    assert [each for each in unexplained if each not in expected_slips] == []
    assert compared == IMPORTS


IMPORTS = 104
