"""`bezel init` on localcloud, under the real engine: made, unchanged, kept while it is used, destroyed, made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bezel_localcloud.core.paths import BILLING_ACCOUNT, PROJECT
from tests.support.bootstrap.setup_harness import SetupHarness, arguments, forget

# Key rings and keys, which Google never deletes, are no resources of the inventory; nor are pools that are marked.
KEPT = {"enabledApis"}
# Lines at which the command and its engine are killed, in the order of a set-up.
STEPS = (
    "apis-storage creating",
    "state-bucket creating",
    "key-secrets creating",
    "spending-budget creating",
    "deploy-account creating",
    "guard creating",
    "moving the state into",
)
DESTROYS = ("copying the state to", "guard deleting", "forge-pool deleting", "state-bucket deleting")

ME = f"serviceAccount:deployer@{PROJECT}.iam.gserviceaccount.com"
SMOKE = f"bezel-smoke@{PROJECT}.iam.gserviceaccount.com"
WITHOUT_FORGE = ("--no-forge", "--project", PROJECT, "--region", "us-east4", "--smoke-user", ME)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[SetupHarness]:
    made = SetupHarness.new(tmp_path)
    yield made
    made.stop()


def test_the_life_of_a_project(setup: SetupHarness) -> None:
    before = setup.exists()
    first = setup.init()
    assert first.code == 0, first.text
    assert "BEZEL_IDENTITY_PROVIDER" in first.text
    assert [name for name in setup.objects() if "/stacks/" in name and name.endswith(".json")]
    assert not (setup.home / "state").exists()

    # Also on a machine that knows nothing but the passphrase.
    passphrase = (setup.home / "passphrase").read_text()
    forget(setup.home)
    setup.home.mkdir()
    (setup.home / "passphrase").write_text(passphrase)
    second = setup.init()
    assert (second.code, "0 changes" in second.text) == (0, True), second.text

    stack = ".pulumi/stacks/bezel/prod.json"
    setup.put(stack)
    refused = setup.destroy()
    assert (refused.code, "bezel/prod" in refused.text) == (1, True), refused.text
    there = setup.exists()
    guarded = setup.pulumi("destroy", "--yes", "--skip-preview")
    assert (guarded.code != 0, "bezel/prod" in guarded.text) == (True, True), guarded.text
    assert {**setup.exists(), "objects": []} == {**there, "objects": []}

    setup.remove(stack)
    destroyed = setup.destroy()
    assert destroyed.code == 0, destroyed.text
    assert "Google keeps the key ring" in destroyed.text
    left = {kind: names for kind, names in setup.exists().items() if before.get(kind) != names}
    assert {*left} <= KEPT, left


@pytest.mark.long
def test_a_destroyed_project_is_made_again_and_adopts_what_google_keeps(setup: SetupHarness) -> None:
    assert setup.init().code == 0
    assert setup.destroy().code == 0
    again = setup.init()
    assert (again.code, "1 to adopt" in again.text) == (0, True), again.text
    assert "0 changes" in setup.init().text


@pytest.mark.long
def test_a_set_up_killed_at_any_step_is_completed_by_the_same_command(setup: SetupHarness) -> None:
    for step in STEPS:
        setup.kill_when(step, "init", "--yes", *arguments())
    last = setup.init()
    assert last.code == 0, last.text
    again = setup.init()
    assert (again.code, "0 changes" in again.text) == (0, True), again.text
    with setup.cloud.http as api:
        budgets = api.get(f"/billingbudgets/v1/{BILLING_ACCOUNT}/budgets").json()["budgets"]
        channels = api.get(f"/monitoring/v3/projects/{PROJECT}/notificationChannels").json()["notificationChannels"]
    assert (len(budgets), len(channels)) == (1, 1)


@pytest.mark.long
def test_a_destroy_killed_at_any_step_is_completed_by_the_same_command(setup: SetupHarness) -> None:
    before = setup.exists()
    assert setup.init().code == 0
    for step in DESTROYS:
        setup.kill_when(step, "init", "--destroy", "--yes", "--project", PROJECT)
    refused = setup.init()
    assert (refused.code, "bezel init --destroy" in refused.text) == (1, True), refused.text
    last = setup.destroy()
    assert last.code == 0, last.text
    assert {kind for kind, names in setup.exists().items() if before.get(kind) != names} <= KEPT


@pytest.mark.wide
@pytest.mark.timeout(400)
def test_a_project_without_a_forge_converges_after_a_kill_and_is_destroyed(setup: SetupHarness) -> None:
    before = setup.exists()
    setup.kill_when("smoke-account creating", "init", "--yes", *WITHOUT_FORGE)
    last = setup.bezel("init", "--yes", *WITHOUT_FORGE)
    assert last.code == 0, last.text
    assert f"bezel:smoke: {{impersonate: {SMOKE}}}" in last.text
    again = setup.bezel("init", "--yes", *WITHOUT_FORGE)
    assert (again.code, "0 changes" in again.text) == (0, True), again.text
    names = str(setup.exists())
    assert SMOKE in names
    assert "pipeline" not in names
    destroyed = setup.destroy()
    assert destroyed.code == 0, destroyed.text
    assert {kind for kind, names in setup.exists().items() if before.get(kind) != names} <= KEPT


def test_a_set_up_that_is_not_agreed_to_shows_its_grants_and_makes_nothing(setup: SetupHarness) -> None:
    before = setup.exists()
    asked = setup.bezel("init", *WITHOUT_FORGE)
    assert asked.code != 0
    assert f"{ME} gets roles/iam.serviceAccountOpenIdTokenCreator on the account {SMOKE}" in asked.text
    assert "add --yes" in asked.text
    assert setup.exists() == before


@pytest.mark.long
def test_a_project_with_a_pipeline_keeps_its_accounts(setup: SetupHarness) -> None:
    assert setup.init().code == 0
    there = setup.exists()
    refused = setup.bezel("init", "--yes", *WITHOUT_FORGE)
    assert (refused.code, "its accounts would be deleted" in refused.text) == (1, True), refused.text
    assert setup.exists() == there
