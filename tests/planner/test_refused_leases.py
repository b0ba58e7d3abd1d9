"""Whatever a lease may not ask for is refused before anything is bought, with value, consequence and repair."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.planner import PlanError, make_plan
from bezel_catalog.quantities import duration_text, parse_duration
from tests.support.planner.l4_stack import L4
from tests.support.planner.v6e_stack import L4X8, V6E4_MOE, lease_plan, lease_problems, with_lease_changes

ZONE = {"zone": "us-east5-a"}

REFUSED = [
    ("no zone", {"lease": {"zones": []}}, "bezel:lease.zones", "us-east5-a"),
    ("a region", {"lease": {"zones": [{"zone": "us-east5"}]}}, "bezel:lease.zones.0.zone", "did you mean us-east5-"),
    ("refused", {"lease": {"zones": [{"zone": "us-central1-b"}]}}, "bezel:lease.zones.0.zone", "choose one of"),
    ("twice", {"lease": {"zones": [ZONE, ZONE]}}, "bezel:lease.zones.1.zone", "remove it"),
    ("unpriced", {"lease": {"zones": [{"zone": "southamerica-west1-a"}]}}, "bezel:lease.zones", "us-east5-a"),
    ("too short", {"lease": {"duration": "9m"}}, "bezel:lease.duration", "10m to 7d"),
    ("too long", {"lease": {"duration": "8d"}}, "bezel:lease.duration", "10m to 7d"),
    ("no unit", {"lease": {"duration": "14400"}}, "bezel:lease.duration", "4h"),
    ("impatient", {"lease": {"patience": "5s"}}, "bezel:lease.patience", "1m to 7d"),
    (
        "longer than a machine waits",
        {"lease": {"back_end": "flex_start_vm", "patience": "3h"}, "network": {"nat": True}},
        "bezel:lease.patience",
        "1m30s to 2h",
    ),
    ("before it can answer", {"lease": {"boot_deadline": "10m"}}, "bezel:lease.boot_deadline", "30m"),
    ("packages, no way", {"lease": {"back_end": "flex_start_vm"}}, "bezel:lease.back_end", "nat: true"),
    ("hub, no way", {"weights": {"loading": "hub"}}, "bezel:weights.loading", "nat: true"),
    ("a mount", {"weights": {"loading": "fuse"}}, "bezel:weights.loading", "remove it"),
    ("scaling", {"scaling": {"max_instances": 2}}, "bezel:scaling", "remove it"),
    ("a probe", {"probe": {"failure_threshold": 5}}, "bezel:probe", "remove it"),
    ("a host", {"resources": {"cpu": 8}}, "bezel:resources", "remove it"),
    ("a gate", {"rollout": "gated"}, "bezel:rollout", "remove it"),
    ("a restart", {"restarted_at": "2026-11-24T12:00:00Z"}, "bezel:restarted_at", "remove it"),
    ("idle money", {"cost": {"max_idle_hourly_usd": 1}}, "bezel:cost.max_idle_hourly_usd", "remove it"),
    ("per hour", {"cost": {"max_hourly_usd": 5.4}}, "bezel:cost.max_hourly_usd", "5.59"),
    ("per lease", {"cost": {"max_lease_usd": 20}}, "bezel:cost.max_lease_usd", "22.33"),
    ("a large batch", {"vllm": {"max-num-seqs": 2048}}, "bezel:vllm.max-num-seqs", "256"),
    ("idle chips", {"vllm": {"tensor-parallel-size": 2}}, "bezel:vllm.tensor-parallel-size", "remove it"),
    ("more chips", {"vllm": {"tensor-parallel-size": 8}}, "bezel:vllm.tensor-parallel-size", "remove it"),
    ("offload", {"vllm": {"cpu-offload-gb": 5}}, "bezel:vllm.cpu-offload-gb", "remove it"),
    ("4 bits", {"model": "gemma-4-12b-it-qat-w4a16"}, "bezel:model", "gemma-4-12b-it"),
    ("a secret", {"variables": {"HF_TOKEN": "x"}}, "bezel:variables.HF_TOKEN", "Secret Manager"),
    ("planned", {"variables": {"HF_HUB_OFFLINE": "0"}}, "bezel:variables.HF_HUB_OFFLINE", "remove it"),
    ("no name", {"variables": {"A B": "0"}}, "bezel:variables.A B", "letters"),
    (
        "twice set",
        {"variables": {"A": "0"}, "secrets": {"A": "s"}},
        "bezel:variables.A",
        "one of the two",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "key", "repair"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_a_lease_may_not_ask_for_is_refused_by_its_key_with_a_repair(changes, key, repair):
    problems = {problem.key: problem for problem in lease_problems(with_lease_changes(V6E4_MOE, **changes))}
    assert key in problems, sorted(problems)
    assert repair in problems[key].repair


def test_the_stack_that_all_these_begin_with_is_planned():
    assert lease_plan()


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"vllm": {"api-key": "x"}}, "bezel:vllm.api-key"),
        ({"secrets": {"VLLM_API_KEY": "vllm-key"}}, "bezel:secrets.VLLM_API_KEY"),
        ({"variables": {"VLLM_API_KEY": "x"}}, "bezel:variables.VLLM_API_KEY"),
    ],
    ids=["an option", "a secret", "a variable"],
)
def test_a_key_of_vllms_own_is_refused_in_every_form_behind_a_gateway_too(changes, key):
    (problem,) = lease_problems(with_lease_changes(V6E4_MOE, **changes))
    assert problem.key == key
    assert "would get 401" in problem.consequence


def test_leases_of_a_project_that_cannot_be_are_refused():
    with pytest.raises(PlanError) as caught:
        make_plan(V6E4_MOE, project="a b; rm", stack="moe")
    assert [(problem.key, problem.value) for problem in caught.value.problems] == [("gcp:project", "a b; rm")]


def test_several_mistakes_are_reported_at_once():
    wrong = with_lease_changes(
        V6E4_MOE, lease={"duration": "1y", "zones": [{"zone": "x"}]}, vllm={"max-num-seqs": 2048}
    )
    assert {problem.key for problem in lease_problems(wrong)} >= {
        "bezel:lease.duration",
        "bezel:lease.zones.0.zone",
        "bezel:vllm.max-num-seqs",
    }


def test_a_patience_that_cannot_be_read_hides_no_problem_and_makes_none():
    zones = [{"zone": "us-east5-a", "patience": "soon"}, {"zone": "us-east5"}, {"zone": "us-east5-b", "wait": "1h"}]
    keys = [problem.key for problem in lease_problems(with_lease_changes(V6E4_MOE, lease={"zones": zones}))]
    assert sorted(keys) == ["bezel:lease.zones.0.patience", "bezel:lease.zones.1.zone", "bezel:lease.zones.2.wait"]
    dear = with_lease_changes(V6E4_MOE, lease={"zones": zones[:1]}, cost={"max_hourly_usd": 1})
    assert [problem.key for problem in lease_problems(dear)] == [
        "bezel:lease.zones.0.patience",
        "bezel:cost.max_hourly_usd",
    ]


@pytest.mark.parametrize("zone", [{}, {"patience": "soon"}, {"zone": 3, "patience": "soon"}, "us-east5-a"])
def test_a_zone_that_cannot_be_read_is_a_problem_of_its_own_key(zone):
    keys = [problem.key for problem in lease_problems(with_lease_changes(V6E4_MOE, lease={"zones": [ZONE, zone]}))]
    assert keys
    assert all(key.startswith("bezel:lease.zones.1") for key in keys)


@pytest.mark.parametrize(
    ("duration", "keys"),
    [
        ("soon", ["bezel:lease.duration"]),
        ("4h", ["bezel:cost.max_lease_usd"]),
        ("8d", ["bezel:lease.duration", "bezel:cost.max_lease_usd"]),
    ],
)
def test_the_cost_of_a_lease_is_that_of_its_own_duration_and_of_no_other(duration, keys):
    config = with_lease_changes(V6E4_MOE, lease={"duration": duration}, cost={"max_lease_usd": 20})
    assert [problem.key for problem in lease_problems(config)] == keys


def test_the_12b_fits_one_chip_at_8192_tokens_and_no_longer():
    one = {**V6E4_MOE, "model": "gemma-4-12b-it", "accelerator": "v6e-1", "lease": {"zones": [ZONE]}}
    assert lease_plan(with_lease_changes(one, vllm={"max-model-len": 8192, "max-num-seqs": 64}))
    (problem,) = lease_problems(with_lease_changes(one, vllm={"max-model-len": 16384, "max-num-seqs": 64}))
    assert (problem.key, problem.repair) == ("bezel:vllm.max-model-len", "set it to 8192 or less, or use more chips.")


def test_a_machine_without_a_price_is_refused_by_the_row_that_is_missing():
    (problem,) = lease_problems({**L4X8, "cost": {}})
    assert "compute, g2-standard-96, us-central1, spot" in problem.consequence
    assert "usd_per_unit" in problem.repair


def test_gpus_are_not_asked_for_in_the_queue_of_tpus():
    (problem,) = lease_problems(with_lease_changes(L4X8, lease={"back_end": "queued_resource"}))
    assert problem.key == "bezel:lease.back_end"
    assert "flex_start_vm" in problem.repair


@pytest.mark.parametrize(
    "changes",
    [{"lease": {"zones": [ZONE]}}, {"network": {"nat": True}}, {"cost": {"max_lease_usd": 3}}],
    ids=lambda changes: next(iter(changes)),
)
def test_what_only_a_lease_heeds_is_refused_on_cloud_run(changes):
    with pytest.raises(PlanError) as caught:
        make_plan({**L4, **changes}, project="p", stack="s")
    assert "which is not leased" in str(caught.value)


@pytest.mark.parametrize(
    ("stack", "changes", "key"),
    [
        (L4, {"lease": {"duration": "soon"}}, "bezel:lease"),
        (L4, {"network": {"nat": "maybe"}}, "bezel:network"),
        (V6E4_MOE, {"scaling": {"max_instances": "many"}}, "bezel:scaling"),
        (V6E4_MOE, {"resources": {"memory": "16"}}, "bezel:resources"),
    ],
    ids=["a lease", "a network", "scaling", "a host"],
)
def test_a_section_without_effect_is_refused_if_its_value_is_unreadable(stack, changes, key):
    with pytest.raises(PlanError) as caught:
        make_plan({**stack, **changes}, project="p", stack="s")
    problems = {problem.key: problem for problem in caught.value.problems}
    assert problems[key].value == "(set)"
    assert any(other.startswith(f"{key}.") for other in problems), "the value is a problem as well"


def test_a_variable_of_the_tpu_server_is_refused_on_a_gpu():
    variables = {"VLLM_TPU_BUCKET_PADDING_GAP": "256"}
    assert lease_plan(with_lease_changes(V6E4_MOE, variables=variables))
    with pytest.raises(PlanError, match="only tpu-inference"):
        make_plan({**L4, "variables": variables}, project="p", stack="s")


def test_hardware_that_nobody_knows_is_refused_with_all_that_is_known():
    with pytest.raises(PlanError) as caught:
        make_plan({**V6E4_MOE, "accelerator": "v6e-16"}, project="p", stack="s")
    assert "v6e-1" in str(caught.value)
    assert "nvidia-l4" in str(caught.value)


@pytest.mark.slow
@given(st.integers(0, 10_000_000))
def test_every_duration_is_read_back_as_it_is_written(seconds):
    assert parse_duration(duration_text(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "h", "4", "4 h", "1h30", "-1h", "1.5h", "4hours", "30m1h"])
def test_what_is_no_duration_is_none(text):
    assert parse_duration(text) is None


def test_a_variable_that_a_secret_sets_too_is_reported_once() -> None:
    twice = with_lease_changes(V6E4_MOE, variables={"A": "0"}, secrets={"A": "s"})
    assert [problem.key for problem in lease_problems(twice)] == ["bezel:variables.A"]
