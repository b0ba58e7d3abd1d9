"""The engine's calls on a check of the package, carried out by the class that dynamic resources have."""

from typing import Any

import pulumi
import pytest

from bezel_plugin.checks import CheckCalls
from bezel_plugin.construct import InputsError

URN = "urn:pulumi:dev::shop::bezel:smoke:HealthCheck::health"
SERVICE = "projects/p/locations/us-east4/services/chat"
JOB = ["gcp:cloudscheduler/job:Job", {"project": "p", "region": "us-east4", "name": "scaling"}]
INPUTS: dict[str, Any] = {
    "service": SERVICE,
    "url": "https://chat.example",
    "revision": "chat-1",
    "servedModel": "gemma",
}


@pytest.fixture
def health() -> CheckCalls:
    return CheckCalls(URN)


def test_a_check_has_the_defaults_of_its_arguments(health: CheckCalls) -> None:
    inputs, failures = health.check({}, INPUTS)
    assert failures == []
    assert inputs == {**INPUTS, "public": False, "speculative": False, "randomWeights": False, "deadlineSeconds": 2400}


def test_a_preview_has_unknown_results(health: CheckCalls) -> None:
    id_, state = health.create(INPUTS, preview=True)
    assert id_ == ""
    assert state == {**INPUTS, "verdict": pulumi.UNKNOWN, "passed": pulumi.UNKNOWN}


def test_the_same_inputs_run_nothing_again(health: CheckCalls) -> None:
    assert health.differs("id", {**INPUTS, "verdict": {"ok": True}}, INPUTS) == (False, [])


@pytest.mark.parametrize("revision", ["chat-2", pulumi.UNKNOWN])
def test_another_revision_runs_the_check_again(health: CheckCalls, revision: object) -> None:
    assert health.differs("id", INPUTS, {**INPUTS, "revision": revision}) == (True, [])


def test_an_input_of_a_component_does_not_run_it_again(health: CheckCalls) -> None:
    assert health.differs("id", {**INPUTS, "leases": []}, {**INPUTS, "leases": [{"name": "a"}]}) == (False, [])
    # Further jobs, grants and rules are noted, by an update that checks nothing.
    earlier, further = ({**INPUTS, "resources": each, "verdict": {"ok": True}} for each in ([], [JOB]))
    assert health.differs("id", earlier, further) == (True, [])
    assert health.update("id", earlier, further, preview=False)["verdict"] == {"ok": True}


@pytest.mark.parametrize(
    ("changes", "key", "reason"),
    [
        ({"servedModels": "x"}, "servedModels", "there is no such input, so it would be ignored. There are audience,"),
        ({"servedModel": None}, "servedModel", "it is required, so nothing is checked. Set it: The model's id"),
        ({"servedModel": 4.0}, "servedModel", "4.0 is of another type, so nothing is checked. Write a text."),
        ({"public": "yes"}, "public", "'yes' is of another type, so nothing is checked. Write true or false."),
        (
            {"deadlineSeconds": "long"},
            "deadlineSeconds",
            "'long' is of another type, so nothing is checked. Write a nu",
        ),
        ({"deadlineSeconds": True}, "deadlineSeconds", "True is of another type"),
        ({"deadlineSeconds": -1.0}, "deadlineSeconds", "the health check would do nothing. Set it above 0."),
        ({"service": "chat"}, "service", "expected projects/P/locations/L/services/S, got 'chat'."),
    ],
)
def test_a_wrong_input_of_a_check_is_refused(
    health: CheckCalls, changes: dict[str, Any], key: str, reason: str
) -> None:
    _, failures = health.check({}, {**INPUTS, **changes})
    assert [name for name, _ in failures] == [key]
    assert reason in failures[0][1]


def test_unknown_values_are_of_every_type(health: CheckCalls) -> None:
    inputs, failures = health.check({}, {**INPUTS, "deadlineSeconds": pulumi.UNKNOWN, "service": pulumi.UNKNOWN})
    assert failures == []
    assert isinstance(inputs["service"], pulumi.output.Unknown)


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(InputsError, match="the package bezel has no such check"):
        CheckCalls("urn:pulumi:dev::shop::bezel:smoke:Healthy::health")
