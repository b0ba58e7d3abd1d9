"""The stand-in after changes that others made: what a refresh reads and the next preview says, against recordings.

BEZEL_TRAFFIC names the folder of recordings; `balancer/drift.json` has 57 changes of 16 types. The recording has what
changed in inputs and outputs, and no response: it is made of the recorded one and of the changed outputs. An empty
value and one that is left out count as the same, as they did in the recording.
"""

import copy
from typing import Any

import pytest

from bezel_pulumi_offline.fidelity.replay import Replay, StandIn, answer_of, differences
from bezel_pulumi_offline.resources import TYPES
from tests.support.standin_providers.balancer_recordings import TRAFFIC, exchanges, recording, short, states

# (type, drift) -> why it differs.
KNOWN = {
    ("compute.GlobalAddress", "attribution label removed"): (
        "Google leaves labels out where there are none; the recorded answer had an empty map"
    ),
}
DRIFTS = 57

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TRAFFIC, reason="BEZEL_TRAFFIC does not name a folder with recordings"),
]


def with_changes(properties: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Properties with the new values of a recorded change."""
    kept = {key: value for key, value in properties.items() if "new" in changes.get(key, {"new": 0})}
    return kept | {key: change["new"] for key, change in changes.items() if "new" in change}


def without_empty(value: Any) -> Any:
    """A JSON value without what is empty."""
    if isinstance(value, dict):
        return {key: item for key, inner in value.items() if (item := without_empty(inner)) not in (None, [], {})}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


def with_answer(token: str, exchange: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A recorded exchange, with the changed outputs in its answer."""
    exchange = copy.deepcopy(exchange)
    fields = [field for field in TYPES[token].fields if field.name in changes]
    resource = exchange["answer"]["rrsets"][0] if "rrsets" in exchange["answer"] else exchange["answer"]
    changed = answer_of(tuple(fields), {name: change.get("new") for name, change in changes.items()})
    for field in fields:
        into = resource
        for part in field.path[:-1]:
            into = into.get(part, {})
        into.pop(field.path[-1], None)
    if "effectiveLabels" in changes:
        changed["labels"] = changes["effectiveLabels"]["new"]
    put(resource, changed)
    return exchange


def put(into: dict[str, Any], values: dict[str, Any]) -> None:
    """Write values into a JSON object, at any depth."""
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            put(into[key], value)
        else:
            into[key] = value


def has_before(state: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether a life is one of the resource that a recorded change was made on, by the values before it."""
    return all(
        state[part].get(name) == change.get("old")
        for part, key in (("outputs", "outputsChanged"), ("inputs", "inputsChanged"))
        for name, change in record.get(key, {}).items()
    )


def slips_of(
    replay: Replay, stand_in: StandIn, token: str, state: dict[str, Any], record: dict[str, Any]
) -> list[str] | None:
    """Differences from a recorded change; None where the recordings have no read of this life."""
    urn = f"urn:pulumi:d0::rec::{token}::thing"
    reads = exchanges(short(token), state["id"], "read", "lro-done")
    if short(token) == "cloudrunv2.Service":  # the same name in two regions, and as another variant
        reads = recording("http/cloudrunv2.Service.read.lro-done")["exchanges"]
    is_record = short(token) == "dns.RecordSet"
    if not reads or not (is_record or all(each["path"].endswith(state["id"]) for each in reads)):
        return None
    is_gone = "read" in record
    replay.expect([] if is_gone else [with_answer(token, each, record["outputsChanged"]) for each in reads])
    request = {"id": state["id"], "urn": urn, "properties": state["outputs"], "inputs": state["inputs"]}
    actual = stand_in.call("Read", request)
    if is_gone:
        return [f"it is there: {actual}"] if actual.get("id") or "error" in actual else []
    expected = {
        "inputs": with_changes(state["inputs"], record["inputsChanged"]),
        "properties": with_changes(state["outputs"], record["outputsChanged"]),
    }
    read = {key: actual.get(key, {}) for key in expected}
    olds = {"olds": read["properties"], "oldInputs": read["inputs"]}
    answer = stand_in.call("Diff", {"id": state["id"], "urn": urn, "news": state["inputs"], **olds})
    verdict = {
        "kind": "replace" if answer.get("replaces") else "update" if answer.get("diffs") else "same",
        "detailedDiff": answer.get("detailedDiff", {}),
    }
    slips = [str(each) for each in differences(without_empty(expected), without_empty(read))]
    return slips + ([] if verdict == record["nextDiff"] else [f"{verdict} in place of {record['nextDiff']}"])


def test_a_refresh_and_the_next_preview_are_as_recorded(replay: Replay, stand_in: StandIn) -> None:
    lives = list(states(with_services=True))
    compared, unexplained = 0, []
    for token, records in recording("drift").items():
        for record in records:
            slips_of_lives = [
                slips
                for name, state in lives
                if name == short(token) and has_before(state, record)
                for slips in [slips_of(replay, stand_in, token, state, record)]
                if slips is not None
            ]
            assert slips_of_lives, (short(token), record["drift"])
            compared += 1
            if [] not in slips_of_lives and (short(token), record["drift"]) not in KNOWN:
                unexplained.append((short(token), record["drift"], slips_of_lives))
    assert unexplained == []
    assert compared == DRIFTS
