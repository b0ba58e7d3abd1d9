"""The resources as the engine meets them: over gRPC, in the plugin's own process."""

import base64
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.runtime.proto import provider_pb2

from bezel_components.base.dynamic import DeployError, Progress
from bezel_smoke.benchmark import ShortBenchmarkProvider
from bezel_smoke.health import HealthCheckProvider
from tests.support.rest.fake_google import PLANTED, Answer
from tests.support.smoke.fake_service import MODEL, SERVICE, Project, condition
from tests.support.smoke.plugin import ROOT, UNKNOWN, Plugin, bag, plugin_running

pytestmark = pytest.mark.slow

HEALTH = HealthCheckProvider()
BENCHMARK = ShortBenchmarkProvider()
URN = "urn:pulumi:dev::bezel::pulumi-python:dynamic/smoke:HealthCheck::llm-health"


def inputs(project: Project, **others: object) -> dict[str, object]:
    return {
        "service": SERVICE,
        "url": project.vllm.url,
        "revision": "llm-00001-abc",
        "served_model": MODEL,
        "public": False,
        "speculative": False,
        "deadline_seconds": 60,
        "urn": URN,
    } | others


def load(project: Project, **others: object) -> dict[str, object]:
    return {
        "url": project.vllm.url,
        "revision": "llm-00001-abc",
        "service": SERVICE,
        "served_model": MODEL,
        "requests": 6,
        "concurrency": 2,
        "prompt_tokens": 20,
        "output_tokens": 6,
        "seed": 1,
        "public": False,
        "deadline_seconds": 20,
        "simulated": False,
        "urn": URN,
    } | others


def test_a_healthy_service_gives_a_verdict_and_stays_as_it_is(project: Project, plugin: Plugin) -> None:
    values = inputs(project)
    created = plugin.create(HEALTH, values)
    verdict = created["verdict"]
    assert verdict["ok"] is True
    assert sorted(verdict["checks"]) == ["completion", "conditions", "health", "models", "refusal"]
    assert all(check["ok"] and check["detail"] and check["seconds"] >= 0 for check in verdict["checks"].values())
    assert created["id"] == f"{SERVICE}/health"
    assert PLANTED not in str(created)
    assert plugin.diff(HEALTH, created, values) == "DIFF_NONE"
    plugin.delete(HEALTH, created)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"revision": "llm-00002-def"}, "DIFF_SOME"),
        ({"revision": UNKNOWN}, "DIFF_SOME"),
        ({"min_draft_acceptance": 0.5}, "DIFF_SOME"),
        ({"deadline_seconds": 61}, "DIFF_SOME"),
        ({"deadline_seconds": 60.0}, "DIFF_NONE"),
        ({"urn": URN.replace("dev", "renamed")}, "DIFF_NONE"),
        ({"impersonate": None}, "DIFF_NONE"),
    ],
)
def test_it_runs_again_only_for_another_revision_or_setting(
    project: Project, plugin: Plugin, change: dict[str, object], expected: str
) -> None:
    """It runs again when the revision or a setting changes and not otherwise."""
    olds = inputs(project) | {"verdict": {"ok": True}}
    assert plugin.diff(HEALTH, olds, inputs(project) | change) == expected


PLANNED = {"template": {"maxInstanceRequestConcurrency": 8}, "traffics": [{"type": "LATEST", "percent": 100}]}


@pytest.mark.parametrize(
    ("serves", "expected"),
    [
        ({"template": {"maxInstanceRequestConcurrency": 8}}, "DIFF_NONE"),
        ({"template": {"maxInstanceRequestConcurrency": 4}}, "DIFF_SOME"),
        ({"template": {}}, "DIFF_SOME"),
    ],
)
def test_it_runs_again_where_the_service_is_no_longer_what_was_declared(
    project: Project, plugin: Plugin, serves: dict[str, object], expected: str
) -> None:
    project.serves = serves | {"traffic": [{"type": "LATEST", "percent": 100}]}
    values = inputs(project, planned=PLANNED)
    assert plugin.diff(HEALTH, values | {"verdict": {"ok": True}}, values) == expected
    assert [call.path for call in project.google.calls if call.path.startswith("/run/")] == [f"/run/v2/{SERVICE}"]


def test_it_runs_again_where_the_service_is_gone(project: Project, plugin: Plugin) -> None:
    """It runs again where the service is gone and not where nobody can look."""
    values = inputs(project, planned=PLANNED, service=SERVICE.replace("llm", "other"))
    assert plugin.diff(HEALTH, values, values) == "DIFF_SOME"
    refused = Answer(403, {"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}})
    project.google.routes.insert(0, lambda call: refused if call.path.startswith("/run/") else None)
    assert plugin.diff(HEALTH, values, values) == "DIFF_NONE"


def test_what_is_declared_anew_or_not_known_yet_is_compared_without_a_look(project: Project, plugin: Plugin) -> None:
    values = inputs(project, planned=PLANNED)
    for template in ({"maxInstanceRequestConcurrency": 4}, {"containers": [{"image": UNKNOWN}]}):
        assert plugin.diff(HEALTH, values, values | {"planned": PLANNED | {"template": template}}) == "DIFF_SOME"
    assert not [call for call in project.google.calls if call.path.startswith("/run/")]


def test_an_update_checks_again(project: Project, plugin: Plugin) -> None:
    olds = inputs(project) | {"verdict": {"ok": True, "checks": {}}}
    project.created = project.ready = "llm-00002-def"
    updated = plugin.update(HEALTH, olds, inputs(project, revision="llm-00002-def"))
    assert updated["verdict"]["checks"]["conditions"]["detail"] == "revision llm-00002-def is ready"
    # Both have passed: a rollback needs to know, and a state of before knows the last one.
    start = {"seconds": [40.0, 90.0], "usd": None}
    again = plugin.update(HEALTH, updated, inputs(project, revision="llm-00002-def", start=start))
    assert [each["revision"] for each in updated["passed"]] == [olds["revision"], "llm-00002-def"]
    assert [each["revision"] for each in again["passed"]] == [olds["revision"], "llm-00002-def"]
    assert again["passed"][-1]["start"]["seconds"] == [40.0, 90.0]
    assert again["passed"][-1]["model"] == olds["served_model"]
    project.terminal = condition("FAILED")
    project.log = ["bye"]
    with pytest.raises(grpc.RpcError):
        plugin.update(HEALTH, olds, inputs(project, revision="llm-00003-ghi"))


def test_a_failure_reads_as_condition_last_lines_and_repair(project: Project, plugin: Plugin) -> None:
    """A failure reads as the platform's condition the last lines and the repair."""
    project.ready = ""
    project.terminal = condition(
        "FAILED", reason="HEALTH_CHECK_CONTAINER_ERROR", message="failed to listen on PORT=8080"
    )
    project.log = [
        "INFO loading",
        f"Authorization: Bearer ya29.{PLANTED}",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "bye",
    ]
    with pytest.raises(grpc.RpcError) as caught:
        plugin.create(HEALTH, inputs(project))
    text = caught.value.details()
    assert text == (
        "smoke: service llm\n"
        "   the conditions check fails: the platform reports that it is not ready\n"
        "   platform: Ready failed (HEALTH_CHECK_CONTAINER_ERROR): failed to listen on PORT=8080\n"
        "   container's last lines:\n"
        "     | INFO loading\n"
        "     | Authorization: Bearer [redacted]\n"
        "     | torch.OutOfMemoryError: CUDA out of memory.\n"
        "     | bye\n"
        "   cause: the accelerator's memory is too small for the weights and vLLM's working space\n"
        "   consequence: llm-00001-abc gets no traffic; no revision serves at this address\n"
        "   Repair: lower vllm.max-num-batched-tokens or vllm.gpu-memory-utilization, or take a smaller encoding of "
        "the model or a larger accelerator.\n"
    )


def test_progress_stands_in_the_row_of_the_resource(project: Project, plugin: Plugin) -> None:
    project.health = [503, 200]
    plugin.create(HEALTH, inputs(project))
    shown = [(one.message, one.urn, one.ephemeral) for one in plugin.engine.logged]
    waited = [message for message, _, _ in shown if message.startswith("waiting for /health to return 200: HTTP 503")]
    assert len(waited) == 1
    assert waited[0].endswith("s of 60 s)")
    assert all(urn == URN and ephemeral for _, urn, ephemeral in shown)
    assert PLANTED not in str(shown)


def test_settings_that_cannot_work_stop_in_preview(project: Project, plugin: Plugin) -> None:
    wrong = inputs(project, service="llm", url="http://elsewhere.example", served_model="", deadline_seconds=0)
    reasons = {one.property: one.reason for one in plugin.check(HEALTH, wrong).failures}
    assert set(reasons) == {"service", "url", "served_model", "deadline_seconds"}
    assert not plugin.check(HEALTH, inputs(project)).failures


def test_a_service_that_failed_before_it_had_an_address_is_explained(project: Project, plugin: Plugin) -> None:
    project.created = project.ready = ""
    project.terminal = condition("FAILED", message="Quota exceeded for total allowable count of GPUs per project.")
    values = inputs(project, url=None, revision="")
    assert not plugin.check(HEALTH, values).failures
    with pytest.raises(grpc.RpcError) as caught:
        plugin.create(HEALTH, values)
    assert "Repair: request more under IAM & Admin > Quotas" in caught.value.details()


def test_a_healthy_service_without_an_address_fails_too(project: Project, plugin: Plugin) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        plugin.create(HEALTH, inputs(project, url=None))
    assert caught.value.details().startswith("smoke: service\n   the service has no address")


def test_values_not_known_yet_pass_the_preview(project: Project, plugin: Plugin) -> None:
    checked = plugin.check(HEALTH, inputs(project, url=UNKNOWN, revision=UNKNOWN))
    assert not checked.failures
    assert checked.inputs["url"] == UNKNOWN


def test_a_benchmark_gives_figures_and_stays_as_it_is(project: Project, plugin: Plugin) -> None:
    values = load(project)
    created = plugin.create(BENCHMARK, values)
    figures = created["figures"]
    assert (figures["requests"], figures["completed"], figures["failed"]) == (6, 6, {})
    assert (figures["prompt_tokens"], figures["output_tokens"]) == (6 * 19, 6 * 6)
    assert PLANTED not in str(created)
    assert plugin.diff(BENCHMARK, created, values) == "DIFF_NONE"
    assert plugin.diff(BENCHMARK, created, load(project, concurrency=3)) == "DIFF_SOME"


def test_a_benchmark_in_which_all_fails_is_explained_by_the_container(project: Project, plugin: Plugin) -> None:
    """A benchmark in which all fails is explained by what the container said."""
    project.chat_status = [503]
    project.log = ["INFO serving", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."]
    with pytest.raises(grpc.RpcError) as caught:
        plugin.create(BENCHMARK, load(project))
    lines = caught.value.details().splitlines()
    assert lines[:2] == ["smoke: service llm", "   all 6 requests of the benchmark failed (http_5xx: 6)"]
    assert "   observed: http_5xx, busy (6 of 6)" in lines
    assert "   cause: vLLM's engine died while it served" in lines


def test_a_benchmark_that_nobody_may_call_says_who_must_be_let_in(project: Project, plugin: Plugin) -> None:
    project.chat_status = [403]
    with pytest.raises(grpc.RpcError) as caught:
        plugin.create(BENCHMARK, load(project))
    assert caught.value.details() == (
        "smoke: service llm\n"
        "   all 6 requests of the benchmark failed (http_403: 6).\n"
        "   Repair: grant the caller roles/run.invoker (access.invokers), or set smoke.impersonate.\n"
    )


def test_the_state_holds_the_providers_by_their_names_only() -> None:
    for provider, name in ((HEALTH, b"bezel_smoke.health"), (BENCHMARK, b"bezel_smoke.benchmark")):
        pickled = base64.b64decode(serialize_provider(provider))
        assert name in pickled
        assert len(pickled) < 100
        assert provider.serialize_as_secret_always is False


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plugin]:
    """The plugin in another checkout, on a machine where nobody is logged in."""
    checkout = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "smoke", checkout / "smoke", ignore=shutil.ignore_patterns("__pycache__"))
    with plugin_running({"GOOGLE_APPLICATION_CREDENTIALS": str(checkout / "none.json")}, checkout) as running:
        yield running


def test_a_destroy_works_from_another_checkout_and_asks_nobody(project: Project, elsewhere: Plugin) -> None:
    elsewhere.delete(HEALTH, inputs(project))
    elsewhere.delete(BENCHMARK, load(project))
    assert not project.vllm.calls
    assert not project.google.calls


def test_missing_credentials_fail_with_the_command_that_repairs_it(project: Project, elsewhere: Plugin) -> None:
    """Credentials that are missing fail with the command that repairs it."""
    with pytest.raises(grpc.RpcError) as caught:
        elsewhere.create(HEALTH, inputs(project))
    assert caught.value.details().startswith("smoke: login to Google\n   cannot be read: ")
    assert "gcloud auth application-default login" in caught.value.details()
    assert "Traceback" not in caught.value.details()


def test_a_plugin_whose_engine_is_gone_ends_instead_of_waiting(project: Project, tmp_path: Path) -> None:
    # Each answer is another message: what was said already is not sent again.
    project.health = [503, 502, 504]
    with plugin_running(project.environment(tmp_path)) as orphan:
        waiting = orphan.stub.Create.future(
            provider_pb2.CreateRequest(properties=bag(HEALTH, inputs(project, deadline_seconds=60)))
        )
        while not any("waiting for /health" in one.message for one in orphan.engine.logged):
            time.sleep(0.02)
        orphan.kill_engine()
        assert orphan.process.wait(60) == 1
        assert waiting.exception() is not None


def test_an_interrupted_plugin_ends_although_a_call_still_waits(project: Project, tmp_path: Path) -> None:
    """The engine waits for it, at most five seconds, and has closed the connection before."""
    project.health = [503, 502, 504]
    with plugin_running(project.environment(tmp_path)) as called_off:
        waiting = called_off.stub.Create.future(
            provider_pb2.CreateRequest(properties=bag(HEALTH, inputs(project, deadline_seconds=600)))
        )
        while not any("waiting for /health" in one.message for one in called_off.engine.logged):
            time.sleep(0.02)
        called_off.process.send_signal(signal.SIGINT)
        assert called_off.process.wait(60) == 0
        assert waiting.exception() is not None


def test_outside_the_engine_a_failure_keeps_its_traceback() -> None:
    """Outside the engine a failure keeps its traceback and progress goes nowhere."""
    assert str(DeployError("x")) == "x"
    assert not hasattr(sys, "tracebacklimit")
    Progress(URN)("anything")


def test_what_is_not_above_zero_is_refused_before_anything_runs(project: Project, plugin: Plugin) -> None:
    values = load(project, requests=0, concurrency=-1)
    reasons = {one.property: one.reason for one in plugin.check(BENCHMARK, values).failures}
    assert reasons == {
        "requests": "requests is 0: the benchmark check would do nothing. Set it above 0.",
        "concurrency": "concurrency is -1: the benchmark check would do nothing. Set it above 0.",
    }


@pytest.mark.parametrize(
    ("environment", "setting", "simulated"), [("1", False, True), (None, True, True), (None, False, False)]
)
def test_figures_of_a_simulated_server_and_no_others_say_so(
    project: Project, monkeypatch: pytest.MonkeyPatch, environment: str | None, setting: bool, simulated: bool
) -> None:
    monkeypatch.delenv("BEZEL_SIMULATED", raising=False)
    if environment:
        monkeypatch.setenv("BEZEL_SIMULATED", environment)
    project.open_paths = {"/health", "/v1/chat/completions"}
    figures = BENCHMARK.run(load(project, public=True, simulated=setting), Progress(URN))["figures"]
    assert figures["simulated"] is simulated
