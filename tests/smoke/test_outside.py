"""Health check's own comparison: what a deploy is about to delete or to set is no change made outside of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bezel.rest import Credentials, GoogleClient
from bezel_smoke.outside import EARLIER, changes_of
from localcloud_support.in_process import COMPUTE, PARENT
from tests.outside_changes.test_life import MALLORY, RULE, SECRET, bind, job, patch
from tests.support.operations.owned_stack import RUN, SCALER, SERVICE, OwnedStack, owned_stack

INVOKER = "gcp:cloudrunv2/serviceIamMember:ServiceIamMember"


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnedStack]:
    with owned_stack(tmp_path) as made:
        for name, value in made.environ.items():
            monkeypatch.setenv(name, value)
        yield made


def find_changes(stack: OwnedStack, **props: Any) -> list[tuple[str, str]]:
    resources = [[one["type"], one["outputs"]] for one in stack.resources]  # with the accounts' computed addresses
    (planned,) = [one["inputs"] for one in stack.resources if one["id"] == SERVICE]
    props_of_check = {"service": SERVICE, "planned": planned, "resources": resources, **props}
    with GoogleClient(Credentials(environ=stack.environ), deadline_seconds=10) as google:
        live = stack.project.ok("GET", f"{RUN}/{SERVICE}")
        return [(each.resource, each.setting) for each in changes_of(props_of_check, google, live, 20.0).changes]


@pytest.mark.slow
def test_a_check_finds_what_no_deploy_of_its_stack_declared(stack: OwnedStack) -> None:
    assert find_changes(stack) == find_changes(stack, **{EARLIER: []}) == []
    bind(f"{RUN}/{SERVICE}", "roles/run.invoker", "allUsers")(stack)
    patch("sshEnabled", sshEnabled=True)(stack)
    mine = [("service llm", "sshEnabled"), ("service llm", "roles/run.invoker")]
    assert find_changes(stack) == mine
    bind(f"{RUN}/{SERVICE}", "roles/run.admin", MALLORY)(stack)
    assert find_changes(stack, **{EARLIER: []}) == [mine[0], ("service llm", "roles/run.admin"), mine[1]]


@pytest.mark.slow
def test_what_this_deploy_is_about_to_delete_is_no_change(stack: OwnedStack) -> None:
    role = "roles/run.invoker"
    bind(f"{RUN}/{SERVICE}", role)(stack)
    stack.project.ok("POST", f"{COMPUTE}/global/firewalls", RULE)
    job("mine", f"https://run.googleapis.com/v2/{SERVICE}", SCALER)(stack)
    everything = {("service llm", role), ("network net", "firewall rule ssh"), ("job mine", "httpTarget")}
    assert set(find_changes(stack, **{EARLIER: []})) == everything
    # The last check knew them as declared; or there was none, and a failed deploy may have left them.
    where = {"project": PARENT.partition("/")[2], "location": "us-east4", "name": "llm"}
    before = [
        [INVOKER, {**where, "role": role, "member": MALLORY}],
        ["gcp:cloudscheduler/job:Job", {"project": where["project"], "region": "us-east4", "name": "mine"}],
        ["gcp:compute/firewall:Firewall", {**RULE, "project": where["project"], "allows": [{"protocol": "tcp"}]}],
    ]
    assert find_changes(stack, **{EARLIER: before}) == []
    assert find_changes(stack) == []


@pytest.mark.slow
def test_a_schedule_s_minimum_and_other_readers_are_left_alone(stack: OwnedStack) -> None:
    """A schedule's minimum and a secret's other readers are left to others."""
    patch("scaling.minInstanceCount", scaling={"minInstanceCount": 3})(stack)
    bind(SECRET, "roles/secretmanager.secretAccessor")(stack)
    assert find_changes(stack, **{EARLIER: []}) == []
    bind(SECRET, "roles/secretmanager.secretAccessor", "allAuthenticatedUsers")(stack)
    assert find_changes(stack) == [("secret hf", "roles/secretmanager.secretAccessor")]
