"""A wrong configuration passes nothing, the shipped ones are right, and the document shows what the policies take."""

from __future__ import annotations

import json

import pytest

from bezel.planner.base.environments import PATTERN as ENVIRONMENT_PATTERN
from bezel_catalog import accelerators, gpu_machines, tpus
from bezel_policies.hardware_cost.pack import POLICIES as COST
from bezel_policies.security.pack import POLICIES as SECURITY
from tests.support.policies.harness import LIMITS, POLICIES, ROOT, SERVICE, example, remedy, service, violations
from tools.docs.policy_tables import policy_table, request_table

OF_A_RESOURCE = [policy.name for policy in COST if not policy.name.startswith("stack-")]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({}, ["most-instances.limits", "Field required"]),
        ({"limits": {}}, ["most-instances.limits", "at least 1"]),
        ({"limits": {"dev": 2}, "limit": {"dev": 40}}, ["most-instances.limit", "Extra inputs", "limits"]),
        ({"limits": {"dev": 2}, "prices": [{"item": "vcpu", "usd_per_unit": 1e-300}]}, ["prices", "Extra inputs"]),
        ({"limits": {"dev": 2, "Staging": 4}}, ["Staging", "not the name of an environment"]),
        ({"limits": {"dev": "two"}}, ["most-instances.limits.dev = two", "valid integer"]),
        ({"limits": {"dev": -1}}, ["greater than or equal to 0"]),
    ],
)
def test_a_wrong_configuration_lets_nothing_pass_and_is_named(config, text) -> None:
    (message,) = violations("most-instances", SERVICE, service(), config)
    for word in [*text, "nothing passes", "--policy-pack-config"]:
        assert word in message


@pytest.mark.parametrize("policy", [*OF_A_RESOURCE, *(policy.name for policy in SECURITY)])
def test_no_policy_takes_a_key_that_it_does_not_have(policy: str) -> None:
    (message,) = violations(policy, "gcp:storage/bucket:Bucket", {}, {**LIMITS.get(policy, {}), "enfrocement": "off"})
    assert f"{policy}.enfrocement" in message


def test_a_wrong_configuration_fills_in_nothing() -> None:
    assert remedy("labels", SERVICE, service({"labels": {}}), {"defaults": "never"}) is None


@pytest.mark.parametrize("policy", OF_A_RESOURCE)
def test_the_engine_refuses_a_configuration_that_misses_the_limits(policy: str) -> None:
    schema = POLICIES[policy].config_schema
    assert schema is not None
    assert schema.required == ["limits"]
    limits = schema.properties["limits"]
    assert limits["propertyNames"] == {"pattern": ENVIRONMENT_PATTERN}
    assert limits["minProperties"] == 1
    assert "$ref" not in json.dumps(schema.properties)  # the engine would find nothing behind it


@pytest.mark.parametrize("environment", ["dev", "prod"])
def test_the_shipped_limits_configure_every_policy_that_needs_them(environment: str) -> None:
    limits, labels = example("hardware_cost", environment), example("security", environment)
    assert set(limits) == {policy.name for policy in COST}
    assert set(labels) <= {policy.name for policy in SECURITY}
    labelled = service({"labels.environment": environment})
    for policy in OF_A_RESOURCE:
        assert violations(policy, SERVICE, labelled, limits[policy]) == []
    assert violations("labels", SERVICE, labelled, labels["labels"]) == []
    hardware = {*accelerators(), *tpus(), *gpu_machines()}
    assert hardware.issuperset(limits["allowed-accelerators"]["limits"][environment])


def test_a_limit_holds_for_any_environment_that_a_stack_can_have() -> None:
    staging = service({"labels.environment": "staging"})
    assert violations("most-instances", SERVICE, staging, {"limits": {"staging": 4}}) == []
    (message,) = violations("most-instances", SERVICE, staging, {"limits": {"dev": 4}})
    assert "limits for dev only" in message


def test_the_document_shows_the_table_of_the_policies() -> None:
    document = (ROOT / "docs" / "policies.md").read_text()
    shown = document.partition("tools.docs.policies -->\n")[2].partition("<!-- end -->")[0]
    assert shown == policy_table(), "run `.venv/bin/python -m tools.docs.policies`"


def test_the_document_shows_the_requests_that_are_understood() -> None:
    document = (ROOT / "docs" / "policies.md").read_text()
    shown = document.partition("tools.docs.policies requests -->\n")[2].partition("<!-- end -->")[0]
    assert shown == request_table(), "run `.venv/bin/python -m tools.docs.policies`"


def test_the_violation_in_the_document_is_what_is_said() -> None:
    (message,) = violations("most-instances", SERVICE, service({"template.scaling.maxInstanceCount": 40.0}))
    document = (ROOT / "docs" / "policies.md").read_text()
    for line in [POLICIES["most-instances"].description, *message.splitlines()]:
        assert line.strip() in document
