"""Leases that have ended, on localcloud's own APIs: those of dev's stacks are deleted, all others only reported."""

from contextlib import nullcontext
from datetime import date

import pytest

from bezel.gitops.upkeep.expiry_run import destroy
from bezel.leases.clock import clock_of
from bezel.leases.inventory import LeaseInventory, new_client
from bezel.upkeep.expiry_plan import ExpiryPlan, add_leases
from bezel.upkeep.expiry_report import ExpiryReport
from tests.support.cli.tpu_cloud import ZONE, running

pytestmark = pytest.mark.slow  # a whole cloud


def test_an_ended_lease_of_dev_is_deleted_and_every_other_is_reported(tmp_path, monkeypatch, capsys):
    with running(tmp_path, monkeypatch, capsys) as cloud:
        cloud.lease("bezel-old", more={"environment": "dev"})
        cloud.lease("bezel-prod", more={"environment": "prod"})
        cloud.lease("research", ours=False)
        cloud.lease("bezel-far", stack="far", more={"environment": "dev"})
        cloud.project.passes(14400 + 60)
        for name in ("bezel-old", "bezel-prod", "bezel-far", "research"):
            cloud.wait_until_settled(name, ZONE, wanted="SUSPENDED")
        cloud.lease("bezel-new", more={"environment": "dev"})
        cloud.lease("bezel-far-new", stack="far", more={"environment": "dev"})
        clock, plan = clock_of(), ExpiryPlan()
        with new_client(clock) as client:
            inventory = LeaseInventory(client, clock, "bezel-local", (ZONE,))
            add_leases(plan, inventory, {"demo"}, clock)
            assert {finding.name: finding.kept_because for finding in plan.findings} == {
                "bezel-old": "",
                "bezel-prod": "its environment is prod",
                "bezel-far": "it may belong to a stack in another backend",
                "bezel-far-new": "it may belong to a stack in another backend",
            }
            prices = {finding.name: finding.hourly_usd for finding in plan.findings}
            assert (prices["bezel-old"], prices["bezel-far-new"]) == ("0.0000", "1.3500")
            destroy(plan, None, inventory, lambda _: nullcontext(), date(2026, 11, 24))
        assert {finding.name: finding.outcome for finding in plan.findings if finding.outcome} == {
            "bezel-old": "destroyed"
        }
        assert cloud.remaining_names() >= {"bezel-prod", "bezel-far", "bezel-new", "bezel-far-new", "research"}
        assert "bezel-old" not in cloud.remaining_names()
        assert ExpiryReport.of(plan).exit_code == 0


def test_zones_that_cannot_be_read_are_a_problem(tmp_path, monkeypatch, capsys):
    with running(tmp_path, monkeypatch, capsys):
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "not a token")
        monkeypatch.setenv("GOOGLE_TPU_V2ALPHA1_CUSTOM_ENDPOINT", "http://127.0.0.1:9/")
        clock, plan = clock_of(), ExpiryPlan()
        with new_client(clock, seconds=1) as client:
            add_leases(plan, LeaseInventory(client, clock, "bezel-local", (ZONE,)), {"demo"}, clock)
        assert plan.findings == []
        assert "leases were not looked at" in plan.problems[0]
