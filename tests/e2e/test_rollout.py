"""`rollout: gated` under the real engine: one stack, made once; each test goes on from what those before it left.

A client asks the service without a pause while revisions come, fail and take over.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.e2e import steady_client
from tests.support.e2e.fault_harness import SERVICE, UNCHANGED, FaultHarness, error_text
from tests.support.e2e.kill_points import HOLD, KillHarness
from tests.support.e2e.rehearsal import Rehearsal
from tests.support.e2e.steady_client import SteadyClient

PATH = f"/run/v2/{SERVICE}"


@contextmanager
def asking(stage: FaultHarness, *, inference: bool = True) -> Iterator[SteadyClient]:
    outputs = stage.rehearsal.outputs()
    url, model = outputs["url"], outputs["model"]
    body = {"model": model, "prompt": "Hi", "max_tokens": 1} if inference else None
    with steady_client.asking(SteadyClient(url, stage.rehearsal.token(url), body)) as client:
        yield client


@pytest.fixture(scope="module")
def deployed_stage(grounds: KillHarness, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultHarness]:
    """A gated stack after its first deploy, for all tests of this module."""
    with FaultHarness.set_up(grounds, tmp_path_factory.mktemp("stage"), "gated", deploy_gated) as stage:
        assert traffic(stage) == ("00001", "00001")
        yield stage


def deploy_gated(made: Rehearsal) -> None:
    """Deploy the stack for the first time."""
    made.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    made.set("rollout", "gated")
    first = made.local("up", "l4-qat")
    assert first.code == 0, first.text
    assert "TrafficSwitch vllm-traffic created" in first.text


def traffic(stage: FaultHarness) -> tuple[str, str]:
    """(the revision that has all traffic, the newest one), by their numbers."""
    service = stage.service().json()
    serving, tagged = service["traffic"]
    assert serving["percent"] == 100, service["traffic"]
    assert tagged == {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "tag": "newest"}
    return serving["revision"][-9:-4], service["latestCreatedRevision"][-9:-4]


def after(revision: str) -> str:
    return f"{int(revision) + 1:05}"


def serving_in_the_outputs(stage: FaultHarness) -> str:
    return str(stage.rehearsal.outputs()["revision"])[-9:-4]


@pytest.mark.wide
def test_a_revision_serves_by_its_name(stage: FaultHarness) -> None:
    serving, newest = traffic(stage)
    assert serving == newest == serving_in_the_outputs(stage)


def test_a_client_sees_nothing_of_a_failed_check_and_of_its_repair(stage: FaultHarness) -> None:
    before, _ = traffic(stage)
    stage.need_a_revision()
    stage.add("engine-death", after_requests=3)
    # The client asks for no inference: its request would be one of the three after which the engine dies.
    with asking(stage, inference=False) as client:
        failed = stage.up()
    client.saw_nothing()
    text = error_text(failed)
    assert "EngineDeadError" in text  # its log
    assert "00000-xxx gets no traffic; bezel-l4-qat-00000-xxx keeps serving" in text
    assert failed.changed_names("updated") == {"vllm-service-service", "vllm-health"}
    assert traffic(stage) == (before, after(before))
    assert serving_in_the_outputs(stage) == before

    stage.clear()
    foretold = stage.rehearsal.local("preview", "l4-qat")
    with asking(stage) as client:
        run = stage.up()
    assert run.code == 0, run.text
    assert foretold.changed_names("update") == run.changed_names("updated") == {"vllm-benchmark", "vllm-traffic"}
    client.saw_nothing()
    assert traffic(stage) == (after(before), after(before))
    assert serving_in_the_outputs(stage) == after(before)
    again = stage.rehearsal.local("preview", "l4-qat", *UNCHANGED, "--refresh")
    assert again.code == 0, again.text


@pytest.mark.wide
def test_a_client_sees_nothing_of_a_rollout(stage: FaultHarness) -> None:
    before, _ = traffic(stage)
    stage.need_a_revision()
    foretold = stage.rehearsal.local("preview", "l4-qat")
    with asking(stage) as client:
        run = stage.up()
    assert run.code == 0, run.text
    changes = {f"vllm-{role}" for role in ("service-service", "health", "benchmark", "traffic")}
    assert foretold.changed_names("update") == run.changed_names("updated") == changes
    client.saw_nothing()
    assert traffic(stage) == (after(before), after(before))


@pytest.mark.wide
def test_a_rollout_killed_under_its_check_is_continued(stage: FaultHarness) -> None:
    before, _ = traffic(stage)
    stage.need_a_revision()
    with stage.rehearsal.api() as api:
        # The first makes the revision; the next one, which moves the traffic, waits: it may come before the kill.
        assert api.put(HOLD, json={"method": "PATCH", "path": PATH, "nth": 2, "when": "before"}).is_success
        process = stage.rehearsal.start("up", "l4-qat")
        stage.rehearsal.kill_engine(process, when="ShortBenchmark vllm-benchmark")
        assert traffic(stage) == (before, after(before))
        assert serving_in_the_outputs(stage) == before
        assert api.delete(HOLD, params={"drop": 1}).is_success
    stage.settle()
    assert traffic(stage) == (after(before), after(before))
    assert serving_in_the_outputs(stage) == after(before)


@pytest.mark.wide
def test_an_unconfirmed_change_is_red_and_the_next_deploy_makes_it(stage: FaultHarness) -> None:
    before, _ = traffic(stage)
    stage.need_a_revision()
    stage.add("server-errors", status=504, method="PATCH", path="/run/*", count=0)
    run = stage.up()
    assert "the API did not confirm the change (HTTP 504)" in error_text(run)
    assert "may differ from the cloud: reading" in run.text
    assert traffic(stage) == (before, before)
    stage.clear()
    stage.settle()
    assert traffic(stage) == (after(before), after(before))


@pytest.mark.wide
def test_traffic_that_somebody_moved_is_shown_and_moved_back(stage: FaultHarness) -> None:
    serving, _ = traffic(stage)
    if serving == "00001":
        stage.need_a_revision()
        stage.settle()
        serving, _ = traffic(stage)
    with stage.rehearsal.api() as api:
        names = [one["name"].rpartition("/")[2] for one in api.get(f"{PATH}/revisions").json()["revisions"]]
        others = [name for name in names if serving not in name]
        target = {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION", "revision": others[0], "percent": 100}
        assert api.patch(PATH, json={"traffic": [target]}, params={"updateMask": "traffic"}).is_success
    shown = stage.rehearsal.local("preview", "l4-qat", *UNCHANGED)
    assert shown.code != 0, shown.text
    assert f"100 % of the traffic goes to {others[0]}" in shown.text
    assert "TrafficSwitch vllm-traffic update" in shown.text
    run = stage.up()
    assert run.code == 0, run.text
    assert traffic(stage) == (serving, serving)


@pytest.mark.wide
def test_without_quota_for_a_second_gpu_a_preview_offers_direct(stage: FaultHarness) -> None:
    stage.add("quota-exceeded", quota=1)
    refused = stage.rehearsal.local("preview", "l4-qat")
    assert refused.code != 0, refused.text
    assert "may need 2 of NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion (2 GPUs) at a time" in refused.text
    assert "set bezel:rollout to direct" in refused.text
    assert "Traceback" not in refused.text
