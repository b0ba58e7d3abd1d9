"""Resources that the health check gets: everything that is declared, without a second machine for the policies."""

import json

import pytest

from bezel.outside_changes.declared import Entry, declared_in
from bezel.resource_cost.hardware import hardware_of
from bezel.resource_cost.inputs import Inputs
from tests.stacks.test_every_stack import STACKS, declare_as_written


@pytest.mark.slow
@pytest.mark.wide_except("l4-qat-mtp", "rtx6000-26b", "v6e1-fleet", "v6e4-moe")
@pytest.mark.parametrize("stack", STACKS)
def test_the_health_check_knows_all_that_its_stack_declares(stack: str) -> None:
    made, _ = declare_as_written(stack)
    (health,) = [one for one in made.all if one.type.endswith("smoke:HealthCheck")]
    resources = health.inputs["resources"]
    assert len(json.dumps(resources)) < 20_000
    resources_of_check = declared_in([Entry(str(type_), "", inputs, {}) for type_, inputs in resources])
    kinds = {one.type for one in made.all if one.type in {type_ for type_, _ in resources}}
    assert sum(one.type in kinds for one in made.all) == len(resources)
    assert list(resources_of_check.services) == [health.inputs["service"]]
    grants = sum(map(len, resources_of_check.grants.values()))
    assert grants == sum("ember:" in one.type for one in made.all)
    assert len(resources_of_check.accounts) == sum(one.type.endswith("account:Account") for one in made.all)
    assert len(resources_of_check.machines) == sum(one.type.endswith("components:TpuRequest") for one in made.all)
    assert "accelerator" not in json.dumps(resources)
    assert "machineType" not in json.dumps(resources)
    assert hardware_of(health.type, Inputs(health.inputs)) is None
