"""Which values of the engine's saved plan an execution may find other than the preview did."""

import json

import pytest

from bezel.engine.run.saved_plans import let_computed_values_differ

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
KINDS = ("gcp:Service::s", "smoke:Check::c", "bezel:Part::p")
SERVICE, CHECK, PART = (f"urn:pulumi:chat::bezel::{kind}" for kind in KINDS)


@pytest.fixture
def loosen(tmp_path):
    """The plan after `let_computed_values_differ`, by the step of the service."""

    def loosen_step(step):
        file = tmp_path / "plan.json"
        check = {
            "custom": True,
            "inputDiff": {"updates": {"planned": "new"}},
            "propertyDependencies": {"revision": [SERVICE], "planned": [SERVICE], "region": []},
        }
        part = {"custom": False, "inputDiff": {}, "outputDiff": {"adds": {"url": "https://new"}}}
        plans = {
            SERVICE: {"steps": [step], "goal": {"custom": True, "inputDiff": {"updates": {"template": 2}}}},
            CHECK: {"steps": ["update"], "goal": check},
            PART: {"steps": ["same"], "goal": part, "state": {"url": "https://new", "revision": "s-1"}},
            "gone": {"steps": ["delete"], "state": None},
        }
        file.write_text(json.dumps({"manifest": {"version": "v3"}, "resourcePlans": plans}))
        let_computed_values_differ(file)
        return json.loads(file.read_text())["resourcePlans"]

    return loosen_step


def test_a_value_that_comes_from_a_changing_resource_may_differ(loosen):
    """A value that comes from a changing resource may differ and no other input."""
    plans = loosen("update")
    assert plans[CHECK]["goal"]["inputDiff"] == {"updates": {"planned": "new", "revision": UNKNOWN}}
    assert plans[SERVICE]["goal"]["inputDiff"] == {"updates": {"template": 2}}
    assert plans[PART]["goal"]["inputDiff"] == {}


def test_a_value_that_comes_from_an_unchanged_resource_stays_as_planned(loosen):
    assert loosen("same")[CHECK]["goal"]["inputDiff"] == {"updates": {"planned": "new"}}


def test_outputs_of_components_may_differ_and_steps_may_not(loosen):
    plans = loosen("update")
    assert plans[PART]["goal"]["outputDiff"] == {"adds": {"url": UNKNOWN}, "updates": {"revision": UNKNOWN}}
    assert [plan["steps"] for plan in plans.values()] == [["update"], ["update"], ["same"], ["delete"]]
