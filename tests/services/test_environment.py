"""What a service reads of the provider's settings and of the environment: project, mark of a simulation, time limit."""

import pytest
from pulumi.runtime import set_all_config

from bezel_base.errors import UserError
from bezel_services import environment
from tests.support.components.fake_engine import declare


@pytest.mark.parametrize(
    ("configured", "variables", "expected"),
    [
        ({"gcp:project": "first"}, {"GOOGLE_PROJECT": "second"}, "first"),
        ({}, {"GOOGLE_PROJECT": "second", "GOOGLE_CLOUD_PROJECT": "third"}, "second"),
        ({}, {"GOOGLE_CLOUD_PROJECT": "third"}, "third"),
        ({}, {"GOOGLE_PROJECT": ""}, None),
    ],
)
def test_the_project_is_the_providers(
    configured: dict[str, str], variables: dict[str, str], expected: str | None
) -> None:
    def program() -> str | None:
        set_all_config(configured)
        return environment.google_project(variables)

    assert declare(program).result == expected


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("0", False), (None, False)])
def test_figures_are_simulated_only_where_the_environment_says_so(value: str | None, expected: bool) -> None:
    assert environment.is_simulated({} if value is None else {"BEZEL_SIMULATED": value}) is expected


@pytest.mark.parametrize(("seconds", "expected"), [(None, 2400), ("", 2400), ("20", 20), ("9000", 2400)])
def test_a_wait_may_be_shortened_by_the_environment_and_never_made_longer(seconds: str | None, expected: float) -> None:
    assert environment.deadline(2400, {} if seconds is None else {"BEZEL_DEADLINE_SECONDS": seconds}) == expected


@pytest.mark.parametrize("seconds", ["soon", "0", "-3", "nan"])
def test_a_deadline_that_is_no_time_is_refused_with_its_value(seconds: str) -> None:
    with pytest.raises(UserError, match=f"BEZEL_DEADLINE_SECONDS = {seconds}"):
        environment.deadline(2400, {"BEZEL_DEADLINE_SECONDS": seconds})
