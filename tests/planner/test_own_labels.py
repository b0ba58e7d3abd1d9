"""No label by which a stack knows its own resources can be set from outside: not in a stack file, not by a policy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.bench_jobs.job_registry import LABELS, RUN
from bezel.leases.names import LEASE, MANAGED_BY, SPEC, STACK
from bezel.planner import make_plan, plan_summary
from bezel.planner.base.names import stack_labels
from bezel.planner.base.parse import read_settings
from bezel_catalog import model
from tests.support.planner.l4_stack import L4, problems_of, with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, lease_problems, with_lease_changes
from tests.support.policies.harness import SERVICE, remedy, service, violations

OF_A_STACK = make_plan(L4, project="p", stack="l4-qat").service.labels.keys() - L4["labels"].keys()
OWN = sorted({*OF_A_STACK, MANAGED_BY, STACK, LEASE, SPEC, *LABELS, RUN, "goog-pulumi-provisioned"})


@pytest.mark.parametrize("key", [*OWN, "Stack", "MANAGED-BY", "bezel-future"])
def test_an_own_label_is_refused_in_each_kind_of_stack_file(key: str) -> None:
    (problem,) = problems_of({"labels": {key: "other"}})
    (of_lease,) = lease_problems(with_lease_changes(V6E4_MOE, labels={key: "other"}))
    for refusal in (problem, of_lease):
        assert (refusal.key, refusal.value) == (f"bezel:labels.{key}", "other")
        owner = "Google reserves this label" if key.startswith("goog") else "clean-up of another stack"
        assert owner in refusal.consequence
        assert "choose a key of your own" in refusal.repair


@pytest.mark.parametrize("key", ["team", "owner", "expires-at", "model-owner", "stack-owner", "my-environment"])
def test_a_label_of_the_users_own_passes(key: str) -> None:
    plan = make_plan(with_changes({"labels": {key: "speech"}}), project="p", stack="l4-qat")
    assert plan.service.labels[key] == "speech"
    assert plan.service.labels["stack"] == "l4-qat"


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from([*OWN, "team"]), st.sampled_from(["other", "prod"])))
def test_whatever_labels_say_a_resource_is_its_stacks(labels: dict[str, str]) -> None:
    settings, _ = read_settings({**L4, "labels": labels})
    plan = make_plan(L4, project="p", stack="l4-qat")
    made = stack_labels(settings, model(L4["model"]), "l4-qat")
    assert {key: made[key] for key in OF_A_STACK} == {key: plan.service.labels[key] for key in OF_A_STACK}


@pytest.mark.parametrize("key", OWN)
def test_no_policy_fills_in_an_own_label(key: str) -> None:
    filling = {"defaults": {"owner": "ml-platform", key: "other"}}
    (message,) = violations("labels", SERVICE, service(), filling)
    assert f"{key}: labels that mark the resources of a stack are never filled in" in message
    assert remedy("labels", SERVICE, service({f"labels.{key}": None}), filling) is None


@pytest.mark.parametrize(("expiry", "is_shown"), [("2026-12-31", True), ("never", False)])
def test_the_summary_shows_until_when_a_stack_is_needed(expiry: str, is_shown: bool) -> None:
    for configuration in (
        with_changes({"labels": {"expires-at": expiry}}),
        with_lease_changes(V6E4_MOE, labels={"expires-at": expiry}),
    ):
        text = plan_summary(make_plan(configuration, project="p", stack="s"))
        assert (f"{expiry} in UTC" in text) is is_shown
