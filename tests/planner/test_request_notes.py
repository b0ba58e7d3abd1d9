"""Notes on requests that wait, on sequences that none reaches, and on responses that a timeout cuts."""

import pytest

from bezel.planner import PlanError, make_plan, plan_summary
from tests.support.planner.l4_stack import with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, with_lease_changes

SEQUENCES = 8  # max-num-seqs of this stack


def warnings(**settings):
    made = make_plan(with_changes({"cost": {"max_hourly_usd": 9}} | settings), project="acme-llm", stack="one")
    assert all(warning in plan_summary(made) for warning in made.warnings)
    return made.warnings


@pytest.mark.parametrize(
    ("concurrency", "note"),
    [
        (1000, "of 1000 requests of an instance 8 run and 992 wait inside vLLM, the last one for 124 batches"),
        (17, "of 17 requests of an instance 8 run and 9 wait inside vLLM, the last one for 2 batches"),
        (7, "never has more than 7 requests, so 1 of its 8 sequences stay unused"),
        (1, "never has more than 1 requests, so 7 of its 8 sequences stay unused"),
    ],
)
def test_requests_beside_another_batch_are_noted(concurrency: int, note: str) -> None:
    (warning,) = warnings(scaling={"request_concurrency": concurrency})
    assert f"scaling.request_concurrency={concurrency} beside max-num-seqs={SEQUENCES}" in warning
    assert note in warning


@pytest.mark.parametrize("concurrency", [None, SEQUENCES, 2 * SEQUENCES])
def test_a_batch_that_runs_and_one_that_waits_is_no_note(concurrency: int | None) -> None:
    assert warnings(scaling={"request_concurrency": concurrency} if concurrency else {}) == ()


def test_the_note_says_when_instances_are_added_and_what_is_refused() -> None:
    (one,) = warnings(scaling={"request_concurrency": 100})
    assert "adds an instance" not in one
    (several,) = warnings(scaling={"request_concurrency": 100, "max_instances": 2})
    assert "adds an instance only at about 60 requests at a time" in several
    (limited,) = warnings(scaling={"request_concurrency": 100}, vllm={"max-num-queued-reqs": 4})
    assert "8 run and 4 wait" in limited
    assert "A further 88 are refused (503)." in limited


def test_a_timeout_below_a_long_response_is_noted_and_of_leases_too() -> None:
    (cut,) = warnings(scaling={"request_timeout_seconds": 60})
    assert "ends a response after 60 s" in cut
    assert "benchmark" not in cut
    (failing,) = warnings(scaling={"request_timeout_seconds": 1})
    assert "The deploy's benchmark asks for 64 and may fail." in failing
    assert warnings(scaling={"request_timeout_seconds": 3600}) == ()
    assert warnings(scaling={"request_timeout_seconds": 3000}, vllm={"max-model-len": 1024}) == ()
    lease = make_plan(
        with_lease_changes(V6E4_MOE, scaling={"request_timeout_seconds": 60}), project="acme-llm", stack="one"
    )
    assert lease.gateway.timeout_seconds == 60
    assert any("ends a response after 60 s" in warning for warning in lease.warnings)


@pytest.mark.parametrize("seconds", [0, -1, 3601, "10m", True, 1.5])
@pytest.mark.parametrize("leased", [False, True])
def test_a_timeout_that_cloud_run_refuses_is_refused(seconds: object, leased: bool) -> None:
    scaling = {"scaling": {"request_timeout_seconds": seconds}}
    config = with_lease_changes(V6E4_MOE, **scaling) if leased else with_changes(scaling)
    with pytest.raises(PlanError) as refused:
        make_plan(config, project="acme-llm", stack="one")
    assert [problem.key for problem in refused.value.problems] == ["bezel:scaling.request_timeout_seconds"]


def test_a_probe_of_the_port_is_planned_and_reported() -> None:
    made = make_plan(with_changes({"probe": {"kind": "tcp"}}), project="acme-llm", stack="one")
    assert "TCP port 8080 after 30 s" in plan_summary(made)
    with pytest.raises(PlanError, match="http or tcp"):
        make_plan(with_changes({"probe": {"kind": "grpc"}}), project="acme-llm", stack="one")
