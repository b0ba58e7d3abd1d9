"""Verdicts of the published provider on a Cloud Run service, recorded in its own process, against the stand-in's.

BEZEL_TRAFFIC names the folder of recordings. Its `balancer/` holds, beside the requests, what the provider says of
single changes (diffs.json), of wrong values (refusals.json, accepted.json) and of inputs (checks.json).
"""

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from pulumi.runtime.proto import provider_pb2 as pb

from bezel_pulumi_offline.fidelity.replay import differences
from bezel_pulumi_offline.lifecycle.values import decode, encode
from pulumi_offline_support.client import Provider, urn
from pulumi_offline_support.google import FakeGoogle
from tests.support.standin_providers.recorded_changes import place, with_change

TRAFFIC = os.environ.get("BEZEL_TRAFFIC")
KIND = "gcp:cloudrunv2/service:Service"
KINDS = pb.PropertyDiff.Kind
ABBREVIATED = {"timeout longer than period", "httpGet and grpc"}  # words of the recording for a value
# A list that is shifted: the provider compares it by its longest common part, the stand-in by its places.
SHIFTED = {"multiRegionSettings.regions", "multiRegionSettings.regions[0]"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TRAFFIC, reason="BEZEL_TRAFFIC does not name a folder with recordings"),
]


def recorded_cases(name: str) -> Any:
    return json.loads((Path(str(TRAFFIC)) / "balancer" / f"{name}.json").read_text())[KIND]


@pytest.fixture(scope="module")
def programs() -> dict[str, Any]:
    """The recorded programs by name; "" is the first."""
    cases = {case["case"]: case for case in recorded_cases("checks") if "news" in case}
    return {**cases, "": cases["main"]}


def test_inputs_are_those_of_the_recordings(programs: dict[str, Any], gcp: Provider) -> None:
    for case in programs.values():
        assert gcp.inputs(KIND, case["news"]) == case["inputs"]


def test_changes_have_the_recorded_verdicts(programs: dict[str, Any], google: FakeGoogle, gcp: Provider) -> None:
    lives: dict[str, tuple[str, dict[str, Any]]] = {}
    compared = 0
    for record in recorded_cases("diffs"):
        variant = record["change"].get("on", "")
        program = programs[variant]["news"]
        wanted = with_change(program, record["change"])
        if wanted is None or record["change"]["op"] in {"spelling", "unknown"}:
            continue
        if variant not in lives:
            google.clear()
            lives[variant] = gcp.create(KIND, program)
        resource_id, made = lives[variant]
        verdict, detailed = verdict_of(gcp, resource_id, made, program, wanted)
        assert verdict == record["kind"], record["change"]
        recorded_kinds = {path: item.get("kind", "ADD") for path, item in record.get("detailedDiff", {}).items()}
        shifted = record["change"].get("path") in SHIFTED and record["change"]["op"] in {"reverse", "remove"}
        assert verdict == "refused" or shifted or detailed == recorded_kinds, record["change"]
        compared += 1
    assert compared == 137


@pytest.mark.parametrize("name", ["svc-mr", "svc-us"])
def test_the_preview_of_an_update_is_as_recorded(name: str, gcp: Provider) -> None:
    state = json.loads((Path(str(TRAFFIC)) / "balancer" / "state" / f"cloudrunv2.Service.{name}.json").read_text())
    (call,) = (call for call in state["calls"] if call["phase"] == "update-preview")
    request = json_format.ParseDict(call["request"], pb.UpdateRequest(), ignore_unknown_fields=True)
    shown = json_format.MessageToDict(gcp.call("Update", request))
    assert list(differences(call["response"], shown)) == []


def verdict_of(
    gcp: Provider, resource_id: str, made: dict[str, Any], before: dict[str, Any], wanted: dict[str, Any]
) -> tuple[str, dict[str, str]]:
    """The stand-in's verdict on a change, and its differences."""
    checked = gcp.check(KIND, wanted, olds=gcp.inputs(KIND, before))
    if checked.failures:
        return "refused", {}
    request = pb.DiffRequest(id=resource_id, urn=urn(KIND), olds=encode(made), news=checked.inputs)
    answer = gcp.call("Diff", request)
    verdict = "replace" if answer.replaces else "update" if answer.diffs else "same"
    return verdict, {path: KINDS.Name(item.kind) for path, item in answer.detailedDiff.items()}


def wrong_values(name: str) -> Iterator[tuple[str, Any]]:
    """The values of a recorded list, each with its property."""
    for record in recorded_cases(name):
        path, value = (record["property"], record["value"]) if isinstance(record, dict) else record
        path = f"template.containers[0].{path}" if path.startswith("readinessProbe") else path
        if value not in ABBREVIATED if isinstance(value, str) else True:
            yield path, "x" * 300 if value == "x*300" else value


@pytest.mark.parametrize(("name", "refused", "number"), [("refusals", True, 96), ("accepted", False, 166)])
def test_values_are_refused_and_taken_as_recorded(
    name: str, refused: bool, number: int, programs: dict[str, Any], gcp: Provider
) -> None:
    compared = 0
    for path, value in wrong_values(name):
        wanted = copy.deepcopy(programs[""]["news"])
        into, last = place(wanted, path)
        if isinstance(last, int) and (not isinstance(into, list) or last >= len(into)):
            continue  # an item of a list that this program does not have
        if value is None and (isinstance(into, list) or last in into):
            del into[last]  # null stands for what is left out
        elif value is not None:
            into[last] = value
        failures = gcp.check(KIND, wanted).failures
        assert bool(failures) is refused, (path, value, [failure.reason for failure in failures])
        compared += 1
    assert compared == number, "as many as when this was written"
    assert decode(gcp.check(KIND, programs[""]["news"]).inputs) == programs[""]["inputs"]
