"""The checks against a fake project on real sockets: each holds, and each has its way to fail."""

import re
from pathlib import Path
from typing import Any

import pytest

from bezel.diagnosis.client import Server as VllmServer
from bezel.rest import Credentials, CredentialsError, GoogleClient
from bezel_smoke.checks import Checks
from bezel_smoke.poller import CheckFailedError, Poller
from tests.support.clock import Clock
from tests.support.rest.fake_google import PLANTED, Answer
from tests.support.smoke.fake_service import FIXTURES, MODEL, SERVICE, Project, condition

pytestmark = pytest.mark.slow


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def check(project: Project, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Any:
    environment = project.environment(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def run(**others: Any) -> tuple[dict[str, Any], list[str]]:
        deadline, model = others.pop("deadline_seconds", 900), others.pop("served_model", MODEL)
        props = {"service": SERVICE} | others
        credentials = Credentials(environ=environment)
        shown: list[str] = []
        with (
            GoogleClient(credentials, clock=clock, sleep=clock.sleep) as google,
            VllmServer(project.vllm.url, None if props.get("public") else credentials) as server,
        ):
            poller = Poller(server, model, deadline, show=shown.append, clock=clock, sleep=clock.sleep)
            try:
                return Checks(props, google, poller).run(), shown
            finally:
                assert PLANTED not in str(shown)

    return run


def failure(check: Any, **others: Any) -> CheckFailedError:
    with pytest.raises(CheckFailedError) as caught:
        check(**others)
    assert PLANTED not in str(caught.value)
    return caught.value


def test_a_healthy_service_passes_all(check: Any) -> None:
    verdict, shown = check()
    assert verdict["ok"] is True
    assert list(verdict["checks"]) == ["conditions", "health", "models", "completion", "refusal"]
    assert verdict["checks"]["completion"]["detail"] == "8 tokens after a prompt of 4"
    assert shown == [f"checking {name}" for name in verdict["checks"]]


def test_a_service_that_is_not_as_declared_fails_with_each_difference(project: Project, check: Any) -> None:
    """A service that is not what was declared fails with every difference."""
    planned = {"template": {"containers": [{"args": ["--a=1"]}], "scaling": {"maxInstanceCount": 2}}}
    project.serves = {"template": {"containers": [{"args": ["--a=1"]}], "scaling": {"maxInstanceCount": 2}}}
    verdict, _ = check(planned=planned)
    assert verdict["checks"]["plan"]["detail"] == "it matches its declaration: template"
    project.serves = {"template": {"containers": [{"args": ["--api-key=planted-1", "--a=2"]}]}}
    failed = failure(check, planned=planned)
    assert failed.check == "plan"
    assert failed.what.splitlines() == [
        "the service differs from its declaration",
        "  containers[0].args: --api-key=[redacted] --a=2 serves, --a=1 is planned",
        "  scaling.maxInstanceCount: nothing serves, 2 is planned",
    ]
    assert failed.repair is not None
    assert "pulumi up --refresh" in failed.repair


def test_a_service_that_is_gone_fails_with_what_makes_it_again(check: Any) -> None:
    failed = failure(check, service=SERVICE.replace("llm", "other"))
    assert (failed.check, "pulumi up --refresh" in str(failed.repair)) == ("conditions", True)


def test_the_platform_is_waited_for_while_it_works(project: Project, clock: Clock, check: Any) -> None:
    project.observed, project.reconciling = 0, True
    project.terminal = condition("RECONCILING")
    clock.events.append((20.0, lambda: (setattr(project, "observed", 1), setattr(project, "reconciling", False))))
    clock.events.append((30.0, lambda: setattr(project, "terminal", condition("SUCCEEDED"))))
    verdict, shown = check()
    assert 30 <= verdict["checks"]["conditions"]["seconds"] < 36
    assert (
        "waiting for the platform to report the newest revision ready: it has not processed the last change yet "
        in shown[1]
    )
    assert shown[1].endswith("(0 s of 900 s)")
    assert any("newest revision ready: Ready reconciling (" in line for line in shown)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"terminal": condition("FAILED", reason="REVISION_FAILED")}, "the platform reports that it is not ready"),
        (
            {"created": "llm-00002-def"},
            "revision llm-00002-def was created, but llm-00001-abc is the newest that is ready",
        ),
        ({"created": "", "ready": ""}, "revision (none) was created, but none is the newest that is ready"),
    ],
)
def test_a_service_that_will_never_be_ready_fails_at_once(
    project: Project, clock: Clock, check: Any, change: dict[str, Any], what: str
) -> None:
    for name, value in change.items():
        setattr(project, name, value)
    failed = failure(check)
    assert (failed.check, failed.what, failed.repair) == ("conditions", what, None)
    assert clock.now == 0


def test_a_service_that_never_settles_meets_the_deadline(project: Project, clock: Clock, check: Any) -> None:
    project.reconciling, project.terminal = True, condition("RECONCILING", message="Deploying")
    failed = failure(check, deadline_seconds=60)
    assert failed.what.startswith("waited 5")
    assert failed.what.endswith("the last state was: Ready reconciling: Deploying")
    assert clock.now <= 60


def test_a_service_that_is_not_there_is_reported(check: Any) -> None:
    failed = failure(check, service=SERVICE.replace("llm", "gone"))
    assert failed.check == "conditions"
    assert "404 NOT_FOUND: no such service" in failed.what


def test_health_is_waited_for(project: Project, check: Any) -> None:
    project.health = [503, 404, 429, 200]
    verdict, shown = check()
    assert verdict["checks"]["health"]["seconds"] == pytest.approx(3.5)
    assert next(line for line in shown if "waiting for /health" in line).endswith("HTTP 503 (0 s of 900 s)")


@pytest.mark.parametrize("ingress", ["INGRESS_TRAFFIC_INTERNAL_ONLY", "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"])
def test_an_outside_caller_of_an_internal_service_gets_an_error(project: Project, check: Any, ingress: str) -> None:
    """Who asks from outside where only insiders are let in gets an error that says so."""
    project.ingress, project.health = ingress, [404]
    failed = failure(check)
    assert (failed.check, failed.what) == ("health", "only the project's own networks have access (HTTP 404)")
    assert "set access.ingress: all" in str(failed.repair)


def test_a_route_that_is_new_is_waited_for_inside_too(project: Project, check: Any) -> None:
    project.ingress, project.health = "INGRESS_TRAFFIC_INTERNAL_ONLY", [404, 404, 200]
    verdict, _ = check()
    assert verdict["checks"]["health"]["ok"]


def test_health_that_never_comes_meets_the_deadline(project: Project, check: Any) -> None:
    project.health = [503]
    failed = failure(check, deadline_seconds=30)
    assert (failed.check, failed.repair) == ("health", None)


def test_a_fresh_grant_is_waited_for(project: Project, clock: Clock, check: Any) -> None:
    project.granted = False
    clock.events.append((60.0, lambda: setattr(project, "granted", True)))
    verdict, shown = check()
    assert verdict["checks"]["health"]["seconds"] >= 60
    assert "a new grant takes up to two minutes" in shown[2]


def test_a_caller_who_was_never_granted_gets_the_repair(project: Project, clock: Clock, check: Any) -> None:
    project.granted = False
    failed = failure(check)
    assert "the caller is refused (HTTP 403: these credentials may not invoke" in failed.what
    assert "roles/run.invoker" in (failed.repair or "")
    assert 120 <= clock.now < 130


def test_an_answer_that_was_cut_is_no_answer_of_another_model(project: Project, check: Any) -> None:
    project.vllm.routes.insert(
        0, lambda call: Answer(200, text='{"object":"list","da') if "models" in call.path else None
    )
    failed = failure(check)
    assert (
        failed.what
        == 'GET /v1/models got HTTP 200 with a body of 20 bytes that is not JSON and begins \'{"object":"list","da\''
    )
    assert "cut or change responses" in (failed.repair or "")


def test_another_model_at_the_address_fails(check: Any) -> None:
    failed = failure(check, served_model="gemma-4-12b")
    assert failed.what == "/v1/models lists ['tiny-gemma4'], not 'gemma-4-12b'"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"usage": None}, "the response has no usage"),
        ({"usage": {"prompt_tokens": 0, "completion_tokens": 8, "total_tokens": 8}}, "usage.prompt_tokens is 0"),
        (
            {"usage": {"prompt_tokens": 4, "completion_tokens": 0, "total_tokens": 4}},
            "usage.completion_tokens is 0, with max_tokens 16",
        ),
        (
            {"usage": {"prompt_tokens": 4, "completion_tokens": 17, "total_tokens": 21}},
            "usage.completion_tokens is 17, with max_tokens 16",
        ),
        (
            {"usage": {"prompt_tokens": 4, "completion_tokens": 8, "total_tokens": 11}},
            "usage.total_tokens is 11, not 4 + 8",
        ),
        ({"choices": []}, "the completion has no text"),
        ({"error": {"message": "broken"}}, "HTTP 200 with an error inside: {'message': 'broken'}"),
    ],
)
def test_a_completion_that_cannot_be_true_fails(
    project: Project, check: Any, change: dict[str, Any], what: str
) -> None:
    project.completion = project.completion | change
    failed = failure(check)
    assert (failed.check, failed.what) == ("completion", what)


def test_a_dead_engine_fails_the_completion(project: Project, check: Any) -> None:
    body = {"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "code": 500}}
    project.vllm.routes.insert(0, lambda call: Answer(500, body) if call.path == "/v1/completions" else None)
    assert failure(check).what == "POST /v1/completions got HTTP 500: EngineCore encountered an issue."


def test_a_busy_server_is_waited_for(project: Project, check: Any) -> None:
    busy = [Answer(503, {"error": {"message": "busy", "code": 503}})] * 2
    project.vllm.routes.insert(0, lambda call: busy.pop() if call.path == "/v1/completions" and busy else None)
    verdict, _ = check()
    assert verdict["checks"]["completion"]["seconds"] == pytest.approx(1.5)


@pytest.mark.parametrize("path", ["/v1/models", "/invocations"])
def test_a_door_that_is_open_fails(project: Project, check: Any, path: str) -> None:
    project.open_paths = {path}
    failed = failure(check)
    assert failed.check == "refusal"
    assert f"{path} without a token got HTTP 200: anyone can use this service" in failed.what
    assert "access.public" in (failed.repair or "")


def test_a_door_that_is_slow_to_answer_is_asked_again(project: Project, check: Any) -> None:
    lost = [Answer(reset=True), Answer(503)]
    project.vllm.routes.insert(0, lambda call: lost.pop() if call.path == "/invocations" and lost else None)
    verdict, _ = check()
    assert verdict["checks"]["refusal"]["seconds"] == pytest.approx(1.5)


def test_an_open_door_is_right_where_it_was_asked_for(project: Project, check: Any) -> None:
    project.open_paths = {"/health", "/v1/models", "/v1/completions", "/invocations"}
    verdict, _ = check(public=True)
    refusal = verdict["checks"]["refusal"]
    assert (refusal["judged"], refusal["detail"]) == (False, "access.public is set")
    assert all(check["judged"] for name, check in verdict["checks"].items() if name != "refusal")
    assert not [call for call in project.vllm.calls if "authorization" in call.headers]


def metrics(drafts: int, accepted: int) -> str:
    """The recorded metrics with other counts, three tokens a draft."""
    text = (FIXTURES / "metrics-ngram.txt").read_text()
    counts = {"drafts": drafts, "draft_tokens": 3 * drafts, "accepted_tokens": accepted}
    for name, count in counts.items():
        text, changed_count = re.subn(
            rf"(?m)^(vllm:spec_decode_num_{name}_total){{.*", rf'\1{{engine="0"}} {count}.0', text
        )
        assert changed_count == 1
    return text


def test_drafts_that_are_accepted_pass(project: Project, check: Any) -> None:
    project.metrics = [metrics(100, 10), metrics(400, 235)]
    verdict, _ = check(speculative=True, min_draft_acceptance=0.25)
    detail = verdict["checks"]["speculation"]["detail"]
    assert detail == "25.0% of 900 tokens in 300 drafts were accepted, at least 25.0% was required"


def test_drafts_from_before_do_not_count(project: Project, check: Any) -> None:
    project.metrics = [metrics(100, 290), metrics(400, 290)]
    failed = failure(check, speculative=True)
    assert failed.what == "0.0% of 900 tokens in 300 drafts were accepted, at least 0.1% is required"


def test_too_few_accepted_drafts_fail(project: Project, check: Any) -> None:
    project.metrics = [metrics(100, 10), metrics(400, 235)]
    assert "at least 30.0% is required" in failure(check, speculative=True, min_draft_acceptance=0.3).what


def test_a_floor_is_held_against_at_least_256_drafts(project: Project, check: Any) -> None:
    project.metrics = [metrics(0, 0), metrics(100, 300), metrics(255, 300), metrics(260, 300)]
    verdict, _ = check(speculative=True, min_draft_acceptance=0.3)
    assert "of 780 tokens in 260 drafts" in verdict["checks"]["speculation"]["detail"]
    project.metrics = [metrics(0, 0), metrics(255, 700)]
    failed = failure(check, speculative=True, min_draft_acceptance=0.3)
    assert failed.what == "255 drafts were counted in 96 completions, 256 are needed to judge"


def test_without_a_floor_one_accepted_token_will_do(project: Project, check: Any) -> None:
    project.metrics = [metrics(0, 0), metrics(1, 1)]
    verdict, _ = check(speculative=True)
    assert verdict["checks"]["speculation"]["detail"] == "33.3% of 3 tokens in 1 drafts were accepted"


def test_random_weights_are_not_judged_but_must_be_drafted_for(project: Project, check: Any) -> None:
    project.metrics = [metrics(0, 0), metrics(100, 0)]
    verdict, _ = check(speculative=True, min_draft_acceptance=0.3, random_weights=True)
    speculation = verdict["checks"]["speculation"]
    assert not speculation["judged"]
    assert speculation["detail"].startswith("the weights are random, and nothing predicts their output; ")
    project.metrics = [metrics(100, 0)]
    failed = failure(check, speculative=True, min_draft_acceptance=0.3, random_weights=True)
    assert failed.what.startswith("no drafts were counted")


def test_the_environment_may_say_that_weights_are_random(project: Project, check: Any, monkeypatch: Any) -> None:
    project.metrics = [metrics(0, 0), metrics(300, 0)]
    monkeypatch.setenv("BEZEL_RANDOM_WEIGHTS", "1")
    verdict, _ = check(speculative=True, min_draft_acceptance=0.3)
    assert not verdict["checks"]["speculation"]["judged"]
    monkeypatch.delenv("BEZEL_RANDOM_WEIGHTS")
    project.metrics = [metrics(0, 0), metrics(300, 0)]
    assert "0.0% of" in failure(check, speculative=True, min_draft_acceptance=0.3).what


def test_a_server_without_speculation_fails_where_it_was_asked_for(project: Project, check: Any) -> None:
    project.metrics = [(FIXTURES / "metrics.txt").read_text()]
    failed = failure(check, speculative=True)
    assert "runs without speculative decoding" in failed.what


def test_counters_of_another_instance_are_not_taken_for_an_answer(project: Project, check: Any) -> None:
    project.metrics = [metrics(900, 90), metrics(100, 10), metrics(200, 160)]
    verdict, _ = check(speculative=True)
    assert verdict["checks"]["speculation"]["detail"].startswith("50.0% of 300 tokens in 100 drafts")


def test_drafts_that_never_come_fail(project: Project, check: Any) -> None:
    project.metrics = [metrics(100, 10)]
    failed = failure(check, speculative=True)
    assert failed.what == "no drafts were counted in 96 completions, 1 is needed to judge"


def test_an_identity_that_cannot_be_had_fails_with_its_own_repair(project: Project, check: Any) -> None:
    project.google.routes.insert(
        0, lambda call: Answer(400, {"error": "invalid_grant"}) if call.path == "/token" else None
    )
    with pytest.raises(CredentialsError, match="invalid_grant"):
        check()
