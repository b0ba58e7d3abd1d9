"""Operations of a stack of two regions behind an address, as a user types them, with a balancer that works."""

import json
from typing import Any

import pytest

from tests.e2e.test_regions import two  # noqa: F401 - the fixture
from tests.support.e2e.regions import DOMAIN, A, B, RegionsStack
from tests.support.e2e.rehearsal import Run

URL = f"https://{DOMAIN}"


def run_command(stack: RegionsStack, command: str, *arguments: str) -> Run:
    """A command about the stack, in a shell that knows the cloud."""
    variables = stack.rehearsal.variables()
    return stack.rehearsal.bezel(*command.split(), "l4-qat", *arguments, **variables)


def json_of(stack: RegionsStack, command: str, *arguments: str) -> dict[str, Any]:
    """The result of a command as JSON."""
    text = run_command(stack, command, *arguments, "--json").text
    document: dict[str, Any] = json.loads(text[text.index("{") :])
    return document


@pytest.mark.wide
def test_commands_use_the_address_and_say_which_region_each_part_is_of(two: RegionsStack) -> None:  # noqa: F811
    two.client()  # the certificate is issued
    endpoint = json_of(two, "endpoint")
    assert (endpoint["url"], endpoint["audience"], endpoint["address"]["answers"]) == (URL, URL, True)
    assert [each["region"] for each in endpoint["regions"]] == [A, B]
    assert f"--connect-to {DOMAIN}:443:" in endpoint["curl"]
    answer = json_of(two, "query", "Say hello.", "--wake")
    assert (answer["finish_reason"] is not None, answer["notes"]) == (True, [])
    two.fault("region-drain", region=A)
    assert run_command(two, "query", "Say hello.", "--wake").code == 0, "the other region answers at the address"
    two.mend()
    # Each region has been asked just now: what the deploy asked may be older than the ten minutes that status looks at.
    status = json_of(two, "status")["stacks"][0]
    assert (status["verdict"], status["certificate"]["state"]) == ("ready", "active")
    assert [(each["region"], each["verdict"]) for each in status["regions"]] == [(A, "ready"), (B, "ready")]
    with_address = float(status["usd_per_hour"]) - sum(float(each["usd_per_hour"]) for each in status["regions"])
    assert round(with_address, 4) == 0.025
    logs = json_of(two, "logs", "--limit", "500")
    assert {line["region"] for line in logs["lines"]} == {A, B}
    assert {line["region"] for line in json_of(two, "logs", "--region", B)["lines"]} == {B}
    refused = run_command(two, "metrics", "--region", "asia-east1")
    assert (refused.code, f"name one of {A}, {B}" in refused.text) == (1, True)
    assert run_command(two, "rollback").code != 0
