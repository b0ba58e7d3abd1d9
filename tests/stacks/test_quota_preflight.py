"""Before anything is declared: what the project may have, what the stack may need, and what others hold of it."""

import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bezel.planner import PlanError, make_plan
from bezel_base.run_facts import VARIABLE, read_facts
from bezel_stacks.dispatch import deploy
from tests.support.components.fake_cloud_run import QUOTA, FakeRun
from tests.support.components.fake_engine import DIGEST, Declarations, declare
from tests.support.planner.v6e_stack import V6E4_MOE, with_lease_changes

SETTINGS: dict[str, Any] = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}
CPU, MEMORY = "CpuAllocPerProjectRegion", "MemAllocPerProjectRegion"
TPU = "TPUV6EPreemptiblePerProjectPerZoneForTPUAPI"
OWN = "bezel-l4-qat"


def declare_service(*, preview: bool = True, **settings: Any) -> Declarations:
    made = make_plan({**SETTINGS, **settings}, project="acme-llm", stack="l4-qat")
    return declare(lambda: deploy(made), preview=preview)


def declare_lease(*, preview: bool = True, **changes: Any) -> Declarations:
    made = make_plan(with_lease_changes(V6E4_MOE, **changes), project="acme-llm", stack="moe")
    return declare(lambda: deploy(made), preview=preview)


def service(name: str, *, least: int = 0, most: int = 1, ready: bool = True) -> dict[str, Any]:
    """A service with one L4 an instance, as run v2 describes it."""
    limits = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    return {
        "name": f"projects/acme-llm/locations/us-east4/services/{name}",
        "terminalCondition": {"state": "CONDITION_SUCCEEDED" if ready else "CONDITION_FAILED"},
        "template": {
            "scaling": {"minInstanceCount": least, "maxInstanceCount": most},
            "nodeSelector": {"accelerator": "nvidia-l4"},
            "gpuZonalRedundancyDisabled": True,
            "containers": [{"resources": {"limits": limits}}],
        },
    }


@pytest.mark.slow
@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize("rollout", ["direct", "gated"])
def test_no_gpu_at_all_stops_before_anything_is_declared(run: FakeRun, rollout: str, preview: bool) -> None:
    run.quota = 0
    with pytest.raises(PlanError) as refused:
        declare_service(rollout=rollout, preview=preview)
    (problem,) = refused.value.problems
    needed = 2 if rollout == "gated" else 1
    assert f"{needed} of {QUOTA}" in problem.consequence
    assert "this project has 0 in us-east4" in problem.consequence
    (command,) = [part for part in problem.repair.split("`") if part.startswith("gcloud")]
    assert shlex.split(command)[:5] == ["gcloud", "beta", "quotas", "preferences", "create"]
    assert {f"--quota-id={QUOTA}", "--dimensions=region=us-east4", f"--preferred-value={needed}"} <= {*command.split()}


@pytest.mark.parametrize("digest", [None, DIGEST])
def test_a_missing_image_is_named_beside_missing_quota(run: FakeRun, digest: str | None) -> None:
    run.quota = 0
    made = make_plan(SETTINGS, project="acme-llm", stack="l4-qat")
    with pytest.raises(PlanError) as refused:
        declare(lambda: deploy(made), preview=True, digest=digest)
    keys = [problem.key for problem in refused.value.problems]
    assert ("digest of docker.io/vllm/vllm-openai:v0.32.0" in keys, len(keys)) == (
        digest is None,
        2 if digest is None else 1,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quota", "allowed", "text"),
    [(CPU, 7999, "8000 of CpuAllocPerProjectRegion (8 vCPUs)"), (MEMORY, (32 << 30) - 1, "(32 GiB)")],
)
def test_cpus_and_memory_have_quotas_too(run: FakeRun, quota: str, allowed: int, text: str) -> None:
    run.quotas[quota] = allowed
    with pytest.raises(PlanError) as refused:
        declare_service(scaling={"max_instances": 2})
    (problem,) = refused.value.problems
    assert text in problem.consequence
    assert "lower `bezel:scaling.max_instances` to 1, or request" in problem.repair
    assert f"this project has {allowed} in us-east4" in problem.consequence
    run.quotas[quota] = allowed + 1
    assert declare_service(scaling={"max_instances": 2}).all


def test_every_quota_that_is_short_is_reported_at_once(run: FakeRun) -> None:
    run.quota, run.quotas = 0, {CPU: 0, MEMORY: 0}
    with pytest.raises(PlanError) as refused:
        declare_service()
    assert [quota in str(refused.value) for quota in (QUOTA, CPU, MEMORY)] == [True] * 3


@pytest.mark.slow
def test_a_gated_rollout_needs_room_for_two_and_direct_is_offered(run: FakeRun) -> None:
    run.quota = 1
    with pytest.raises(PlanError, match=r"set bezel:rollout to direct \(.+\), or request 2"):
        declare_service(rollout="gated")
    assert declare_service(rollout="direct").all


def test_what_other_services_hold_without_traffic_is_not_free(run: FakeRun) -> None:
    run.neighbours = [service("chat", least=2, most=2), service("idle", least=0, most=2)]
    with pytest.raises(PlanError, match=r"has 2 in us-east4, of which chat hold 2: .*\n   Repair: request 3"):
        declare_service()


@pytest.mark.slow
def test_what_others_may_scale_to_is_reported_and_stops_nobody(run: FakeRun, caplog: pytest.LogCaptureFixture) -> None:
    run.neighbours = [service("chat", most=2)]
    assert declare_service().all
    assert "may need 3 GPUs of the 2 GPUs allowed in us-east4: 1 GPU of the new revision and 2 GPUs" in caplog.text
    assert "that its other services may take with all their instances" in caplog.text


@pytest.mark.slow
def test_its_own_instances_are_never_counted_against_a_stack(run: FakeRun, caplog: pytest.LogCaptureFixture) -> None:
    run.quota, run.neighbours = 4, [service(OWN, least=2, most=2)]
    settings: dict[str, Any] = {"scaling": {"max_instances": 2, "min_instances": 2}, "environment": "prod"}
    assert declare_service(**settings).all
    assert caplog.text == ""
    run.quota = 3
    assert declare_service(**settings).all
    assert "may need 4 GPUs of the 3 GPUs allowed" in caplog.text
    assert "2 GPUs of the new revision and 2 GPUs of the old one" in caplog.text


@pytest.mark.slow
def test_what_serves_already_is_no_reason_to_stop_and_more_than_that_is(
    run: FakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    run.quota, run.neighbours = 0, [service(OWN)]
    assert declare_service().all
    assert "The present revision keeps serving; an update fails." in caplog.text
    with pytest.raises(PlanError, match="2 instances may need 2"):
        declare_service(scaling={"max_instances": 2})
    run.neighbours = [service(OWN, ready=False)]
    with pytest.raises(PlanError, match="1 instance may need 1"):
        declare_service()


@pytest.mark.slow
def test_a_quota_that_nobody_knows_is_said_in_previews_with_how_to_know_it(
    run: FakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    run.quota = None
    declare_service()
    assert f"Needed at a time: 1 of {QUOTA} (1 GPU); 4000 of {CPU} (4 vCPUs); 17179869184 of {MEMORY}" in caplog.text
    assert "gcloud services enable cloudquotas.googleapis.com --project=acme-llm" in caplog.text
    caplog.clear()
    declare_service(preview=False)
    assert "not known" not in caplog.text


@pytest.mark.slow
def test_who_may_read_nothing_gets_an_error_that_says_so_and_goes_on(
    run: FakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    run.denied, run.neighbours = True, None
    assert declare_service().all
    assert "quota of us-east4 is not known" in caplog.text
    assert "the use of quotas by other services of us-east4 is not known" in caplog.text


@pytest.mark.slow
def test_the_quota_api_is_on_after_the_first_deploy_of_every_service() -> None:
    assert declare_service().by_name("vllm-apis-cloudquotas")


@pytest.mark.slow
def test_a_lease_that_no_zone_has_quota_for_is_refused(run: FakeRun) -> None:
    run.quotas[TPU] = 3
    with pytest.raises(PlanError) as refused:
        declare_lease()
    (problem,) = refused.value.problems
    assert problem.key == "bezel:lease.zones"
    assert (
        f"needs 4 of {TPU} (4 chips), and this project has 3 in europe-west4-a, 3 in us-east5-a" in problem.consequence
    )
    assert "--dimensions=zone=europe-west4-a --preferred-value=4" in problem.repair
    run.quotas[TPU] = 4
    assert declare_lease().all


@pytest.mark.slow
def test_a_lease_that_is_there_holds_its_quota_already(run: FakeRun, caplog: pytest.LogCaptureFixture) -> None:
    run.quotas[TPU] = 0
    run.leases = {"projects/acme-llm/locations/us-east5-a/queuedResources/bezel-moe"}
    assert declare_lease().all
    assert "Existing leases stay; new ones are refused." in caplog.text
    with pytest.raises(PlanError, match="2 leases of v6e-4 need 8"):
        declare_lease(lease={"count": 2})


@pytest.mark.slow
def test_leases_of_a_fleet_share_the_quotas_of_their_zones(run: FakeRun) -> None:
    run.quotas[TPU] = 4
    assert declare_lease(lease={"count": 2}).all
    with pytest.raises(PlanError, match=r"3 leases of v6e-4 need 12 of .* no zone would grant them all"):
        declare_lease(lease={"count": 3})


@pytest.mark.slow
def test_quotas_of_leases_that_nobody_knows_are_said(run: FakeRun, caplog: pytest.LogCaptureFixture) -> None:
    run.quota = None
    declare_lease()
    assert f"Needed at a time: 4 of {TPU} (4 chips)" in caplog.text


@pytest.mark.slow
def test_a_preview_says_what_is_used_of_each_quota_and_who_says_so(
    run: FakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    run.counted, run.neighbours = {QUOTA: (1, 90.0)}, [service("chat", least=1)]
    declare_service()
    used = "1 GPU used (Cloud Monitoring, 1m30s ago), 2 GPUs allowed, 1 GPU needed; other services may take 1 GPU."
    assert f"{QUOTA} in us-east4: {used}" in caplog.text
    assert f"{CPU} in us-east4: at least 4 vCPUs used (by the services that run without traffic)" in caplog.text
    text = f"does not report the use of {CPU}, {MEMORY} (it has no value of the last day)"
    assert text in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("preview", [True, False])
def test_preview_tells_its_run_the_use_of_quotas(
    run: FakeRun, preview: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A deploy tells none: it does not wait for what decides nothing."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "facts.json"))
    run.neighbours = [service("chat", least=1, most=2)]
    declare_service(preview=preview)
    facts = read_facts(tmp_path / "facts.json")
    assert [line.partition(":")[0] for line in facts.get("quota_use", ())][:3] == [
        f"{quota} in us-east4" for quota in (QUOTA, CPU, MEMORY) if preview
    ]
    assert any("may need 3 GPUs of the 2 GPUs allowed" in text for text in facts.get("quota_warning", ())) is preview


@pytest.mark.slow
@pytest.mark.parametrize("why", ["Permission 'monitoring.timeSeries.list' denied.", "is disabled"])
def test_without_monitoring_the_list_is_reported_and_unknown_stays_so(
    run: FakeRun, caplog: pytest.LogCaptureFixture, why: str
) -> None:
    caplog.set_level("INFO")
    run.unmonitored = why
    assert declare_service().all
    assert f"{QUOTA} in us-east4: use not known, 2 GPUs allowed" in caplog.text
    assert f"(403 TEST: {why})" in caplog.text
    assert "Grant roles/monitoring.viewer" in caplog.text
    assert "0 GPUs used" not in caplog.text


@pytest.mark.slow
def test_what_only_monitoring_counts_is_a_warning_and_stops_nobody(
    run: FakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    run.counted = {QUOTA: (2, 30.0)}
    assert declare_service().all
    assert f"{QUOTA}: 30s ago Cloud Monitoring counted 2 GPUs in use in us-east4, of the 2 GPUs" in caplog.text
    assert "request 3: `gcloud beta quotas preferences create" in caplog.text
    caplog.clear()
    run.counted = {QUOTA: (1, 30.0)}
    assert declare_service().all
    assert caplog.text == ""


@pytest.mark.slow
def test_what_monitoring_counts_of_a_stacks_own_service_is_no_crowd(
    run: FakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    run.quota, run.neighbours, run.counted = 4, [service(OWN, least=2, most=2)], {QUOTA: (2, 30.0)}
    assert declare_service(scaling={"max_instances": 2}).all
    assert caplog.text == ""
    run.counted = {QUOTA: (5, 30.0)}
    assert declare_service(scaling={"max_instances": 2}).all
    assert "Cloud Monitoring counted 5 GPUs" in caplog.text


def test_what_monitoring_misses_stops_as_the_list_says(run: FakeRun) -> None:
    run.neighbours, run.counted = [service("chat", least=2, most=2)], {QUOTA: (0, 30.0)}
    with pytest.raises(PlanError, match="of which chat hold 2"):
        declare_service()


@pytest.mark.slow
def test_a_deploy_does_not_wait_for_what_decides_nothing(run: FakeRun) -> None:
    declare_service(preview=False)
    assert not [call for call in run.server.calls if call.path.startswith("/monitoring/")]


@pytest.mark.slow
def test_a_lease_is_reported_where_others_have_all_of_its_quota(run: FakeRun, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    run.quotas[TPU], run.counted = 4, {TPU: (4, 3600.0)}
    assert declare_lease().all
    assert (
        f"{TPU} in us-east5-a: 4 chips used (Cloud Monitoring, 1h ago), 4 chips allowed, 4 chips needed." in caplog.text
    )
    assert f"{TPU}: 1h ago Cloud Monitoring counted 4 chips in use in us-east5-a" in caplog.text
    caplog.clear()
    run.leases = {"projects/acme-llm/locations/us-east5-a/queuedResources/bezel-moe"}
    assert declare_lease().all
    assert "1h ago Cloud Monitoring counted" not in caplog.text


@pytest.mark.slow
def test_an_old_figure_is_corrected_by_the_list_at_the_worst_moment(
    run: FakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    """Two are counted as used, three allowed, one needed: with the old revision and a new maximum it is four."""
    caplog.set_level("INFO")
    changed = (datetime.now(UTC) - timedelta(minutes=3)).isoformat()
    run.quota, run.counted = 3, {QUOTA: (2, 540.0)}
    run.neighbours = [service(OWN), service("chat", most=2) | {"updateTime": changed}]
    assert declare_service().all
    assert (
        "2 GPUs used (Cloud Monitoring, 9m ago, before chat changed), 3 GPUs allowed, 1 GPU needed, 2 GPUs while the "
        "old revision still runs; other services may take 2 GPUs."
    ) in caplog.text
    assert "this deploy may need 4 GPUs of the 3 GPUs allowed in us-east4" in caplog.text
    caplog.clear()
    run.quota = 4
    assert declare_service().all
    assert "at its worst moment" not in caplog.text
