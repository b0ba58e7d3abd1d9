"""A lease returned in two steps against localcloud's own APIs: the lease that was shown, by its name, and no other."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel.operations.changes.basis import ChangedError
from bezel.operations.changes.confirmations import ConfirmationError, Confirmations
from bezel.operations.context import Context
from bezel.operations.tpu.delete_lease import DeleteArguments, apply_delete, plan_delete
from bezel_base.errors import UserError
from tests.support.cli.tpu_cloud import ZONE, running
from tests.support.leases.harness import NAME, ZONES, LeaseHarness
from tests.support.operations.deployed import state_of
from tests.support.operations.lease_cloud import ROOT, LeaseCloud

pytestmark = pytest.mark.slow  # a whole cloud each


@pytest.fixture
def leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[LeaseCloud]:
    with running(tmp_path, monkeypatch, capsys) as cloud:
        yield LeaseCloud(cloud)


@pytest.mark.parametrize("vm", [False, True])
def test_the_lease_that_was_planned_is_deleted_and_no_other(leases: LeaseCloud, vm: bool) -> None:
    leases.cloud.lease("bezel-one", vm=vm)
    leases.cloud.lease("bezel-one-more")
    plan = leases.plan_delete("bezel-one")
    assert plan.destroyed[0].startswith(f"{ZONE}/bezel-one")
    assert plan.price_before is not None
    assert (plan.price_before.usd_per_hour is None) == bool(plan.price_before.missing)
    assert plan.price is not None
    assert " -> 0.00 USD/h" in plan.price
    assert leases.cloud.changing_calls == []
    done = leases.delete(plan)
    assert (done.verdict, len(done.changes), done.problems) == ("done", 1, ())
    assert leases.cloud.remaining_names() == {"bezel-one-more"}


def test_a_stack_that_is_deployed_with_it_is_named(
    leases: LeaseCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = tmp_path / "states"
    kept = states / ".pulumi/stacks/bezel"
    kept.mkdir(parents=True)
    (kept / "demo.json").write_text(json.dumps(state_of()))
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{states}")
    leases.cloud.lease("bezel-one")
    leases.cloud.lease("bezel-two", stack="over")
    assert leases.plan_delete("bezel-one").warnings[0].startswith("the stack demo is deployed and will serve nothing")
    assert leases.plan_delete("bezel-two").warnings == ()
    monkeypatch.setenv("PULUMI_BACKEND_URL", "nonsense://states")
    assert leases.plan_delete("bezel-one").warnings[0].startswith("whether a deployed stack needs it is unknown")


def test_its_name_has_to_be_repeated(leases: LeaseCloud) -> None:
    leases.cloud.lease("bezel-one")
    plan, confirmations = leases.plan_delete("bezel-one"), Confirmations()
    token = confirmations.offer(plan, "a").token
    with pytest.raises(ConfirmationError, match="its name has to be repeated"):
        confirmations.take(token, "a", name="bezel")
    assert confirmations.take(token, "a", name="bezel-one") == plan


def test_a_lease_that_was_requested_again_meanwhile_stays(leases: LeaseCloud) -> None:
    leases.cloud.lease("bezel-one")
    plan = leases.plan_delete("bezel-one")
    leases.delete(plan)
    leases.cloud.lease("bezel-one")
    with pytest.raises(ChangedError, match="the leases of that name"):
        leases.delete(plan)
    assert leases.cloud.remaining_names() == {"bezel-one"}


def test_what_is_nobody_s_or_somebody_else_s_cannot_be_confirmed(leases: LeaseCloud) -> None:
    leases.cloud.lease("research-box", ours=False)
    leases.cloud.lease("bezel-odd", more={"bezel-lease": "another"})
    with pytest.raises(UserError, match="no such lease of this program"):
        leases.plan_delete("research-box")
    (refusal,) = leases.plan_delete("bezel-odd").refusals
    assert "its owner is unknown" in refusal


def test_a_cancelled_deletion_says_that_it_continues(trial: LeaseHarness) -> None:
    trial.run()
    trial.world.zone(ZONES[0]).delete_seconds = 300.0
    cancelled = threading.Event()

    def context() -> Context:
        return Context(ROOT, clock=trial.world.clock, show=lambda _line: cancelled.set(), cancelled=cancelled)

    with context() as planning:
        plan = plan_delete(planning, DeleteArguments(name=NAME, zone=ZONES, project="acme"))
    with context() as deleting:
        done = apply_delete(deleting, plan)
    assert (done.verdict, done.exit_code, done.changes) == ("cancelled", 130, ())
    assert "continues" in done.problems[0]
    assert len(trial.calls("DELETE")) == 1
