"""Rules of the diagnosis: recorded failures have their cause, a request's words are no evidence, past is past."""

from pathlib import Path
from typing import Any

import pytest

from bezel.diagnosis.platform import Condition
from bezel.diagnosis.start_evidence import is_request
from bezel.operations.diagnosis.request_log import LoggedRequest
from bezel.operations.diagnosis.rules import Finding, findings_of
from bezel.operations.log_reading.entries import level_of
from bezel.operations.log_reading.lines import LogLine
from bezel.operations.log_reading.revisions import ReadRevision
from bezel.operations.vllm_metrics.figures import figures_of, outcomes_of
from bezel.operations.vllm_metrics.sample import parse

VLLM = Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm"
STARTS = VLLM / "starts"
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def lines(*texts: str) -> list[LogLine]:
    return [
        LogLine(
            time=f"2026-09-21T14:00:{number % 60:02}Z",
            severity=level_of(text) or None,
            source="container",
            resource=None,
            instance=None,
            text=text,
        )
        for number, text in enumerate(texts)
    ]


def recorded_lines(name: str) -> list[LogLine]:
    return lines(*(STARTS / f"{name}.log").read_text().splitlines())


def kinds(findings: tuple[Finding, ...]) -> list[str]:
    return [each.kind for each in findings]


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("kv_cache", "kv_cache", "lower vllm.max-model-len to 2688 or less"),
        ("parser", "argument", "correct it under `vllm`"),
        ("missing", "model_files", "copy them into the bucket"),
        ("argument", "argument", "remove it from `vllm`"),
        ("memory_taken", "crash", "correct the first error in the log"),
    ],
)
def test_a_recorded_failing_start_of_vllm_has_its_cause(name: str, kind: str, text: str) -> None:
    first, *_ = findings_of(recorded_lines(name))
    assert first.kind == kind
    assert text in first.repair
    assert first.evidence
    assert first.at is not None
    assert not first.is_past


def test_a_recorded_start_that_was_healthy_has_none() -> None:
    assert findings_of(recorded_lines("healthy")) == ()


def test_every_recorded_failing_start_is_explained() -> None:
    for block in (VLLM / "failing-starts.txt").read_text().split("### ")[1:]:
        command, _, *texts = block.splitlines()
        assert kinds(findings_of(lines(*texts))), command


@pytest.mark.slow
def test_what_an_earlier_start_logged_is_past() -> None:
    findings = findings_of([*recorded_lines("kv_cache"), *recorded_lines("healthy")])
    assert [(each.kind, each.is_past) for each in findings] == [("kv_cache", True)]
    assert not findings_of([*recorded_lines("healthy"), *recorded_lines("kv_cache")])[0].is_past


@pytest.mark.parametrize(
    "text",
    [
        f'(APIServer pid=1) INFO:     10.0.0.1:1 - "GET /x?{OUT_OF_MEMORY} HTTP/1.1" 404 Not Found',
        f"INFO 11-24 [logger.py:1] Received request chatcmpl-1: prompt: '{OUT_OF_MEMORY}', params: x",
        "GET https://llm.example/EngineDeadError 404",
    ],
)
def test_the_words_of_a_request_are_no_evidence(text: str) -> None:
    assert is_request(text)
    assert findings_of(lines(text)) == ()
    assert kinds(findings_of(lines(text, OUT_OF_MEMORY)))[0] == "gpu_memory"


def test_several_causes_are_all_reported_once() -> None:
    full = "OSError: [Errno 28] No space left on device: '/tmp'"
    findings = findings_of(lines(OUT_OF_MEMORY, OUT_OF_MEMORY, full))
    assert kinds(findings) == ["gpu_memory", "disk"]


def test_the_platform_s_failure_is_evidence_too() -> None:
    quota = Condition("Ready", "CONDITION_FAILED", "", "Quota exceeded for total allowable count of GPUs")
    (finding,) = findings_of((), (quota,))
    assert (finding.kind, finding.source) == ("quota", "platform")
    odd = Condition("Ready", "CONDITION_FAILED", "INTERNAL", "Something went wrong.")
    (finding,) = findings_of((), (odd,))
    assert (finding.kind, finding.evidence) == ("unknown", str(odd))


def by_metrics(*changes: tuple[str, str], name: str = "metrics.txt") -> tuple[Finding, ...]:
    text = (VLLM / name).read_text().partition("\n\n")[2]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    sample = parse(text, 1.0)
    assert sample is not None
    return findings_of((), (), figures_of(sample), outcomes_of(sample))


WAITING = 'vllm:num_requests_waiting{engine="0",model_name="tiny-gemma4"} '
USAGE = 'vllm:kv_cache_usage_perc{engine="0",model_name="tiny-gemma4"} '


@pytest.mark.parametrize(("usage", "kind"), [("0.99", "kv_cache_full"), ("0.2", "batch_full")])
def test_figures_together_tell_why_requests_wait(usage: str, kind: str) -> None:
    quiet = kinds(by_metrics())
    findings = by_metrics((f"{WAITING}0.0", f"{WAITING}7.0"), (f"{USAGE}0.0", f"{USAGE}{usage}"))
    new = [each for each in findings if each.kind not in quiet]
    assert [each.kind for each in new] == [kind]
    assert "waiting 7 requests" in new[0].evidence


def test_a_dead_engine_shows_in_the_metrics_by_its_failures() -> None:
    assert "success_rate" in kinds(by_metrics(name="engine-dead/metrics.txt"))


REFUSED = "error Exporting failed. Dropping data. error: rpc error: code = PermissionDenied desc = Permission "
REFUSED += "monitoring.timeSeries.create denied (or the resource may not exist)., dropped_items: 7"
NOT_ENABLED = (
    "error Exporting failed. Dropping data. error: rpc error: code = PermissionDenied desc = Cloud Monitoring "
)
NOT_ENABLED += "API has not been used in project acme-llm before or it is disabled."


def collector_lines(*texts: str) -> list[LogLine]:
    return [each.model_copy(update={"container": "collector"}) for each in lines(*texts)]


@pytest.mark.parametrize(
    ("text", "repair"), [(REFUSED, "roles/monitoring.metricWriter"), (NOT_ENABLED, "--project=acme-llm")]
)
def test_a_refusal_of_the_collector_is_no_error_of_the_server(text: str, repair: str) -> None:
    (finding,) = findings_of([*lines(SAID), *collector_lines(text)])
    assert (finding.kind, finding.evidence, finding.is_past) == ("collector", text, False)
    assert "the server itself works" in finding.cause
    assert repair in finding.repair
    # Beside errors of the server it comes last, whatever else the collector prints.
    others = collector_lines(text, "403 storage.objects.get: permission denied on bucket")
    of_server = kinds(findings_of(recorded_lines("kv_cache")))
    assert kinds(findings_of([*others, *recorded_lines("kv_cache")])) == [*of_server, "collector"]


def test_what_else_a_collector_prints_is_no_finding() -> None:
    assert findings_of(collector_lines("warn Failed to scrape Prometheus endpoint", OUT_OF_MEMORY)) == ()
    assert kinds(findings_of(lines(OUT_OF_MEMORY))) == ["gpu_memory"]


def log_line(second: int, text: str, *, instance: str = "", revision: str = "r1", source: str = "container") -> LogLine:
    return LogLine(
        time=f"2026-09-21T14:{second // 60:02}:{second % 60:02}Z",
        severity=level_of(text) or None,
        source=source,  # type: ignore[arg-type]
        resource=revision,
        instance=instance or None,
        text=text,
    )


def platform(second: int, text: str, instance: str, revision: str = "r1") -> LogLine:
    return log_line(second, text, instance=instance, revision=revision, source="platform")


NOW = 1_789_999_200.0 + 800  # 2026-09-21T14:13:20Z
SAID = "INFO:     Application startup complete."
PROBED = 'STARTUP HTTP probe succeeded after 3 attempts for container "llm-1" on port 8000 path "/health".'
TCP = 'Default STARTUP TCP probe succeeded after 1 attempt for container "llm-1" on port 8000.'
SERVED = 'INFO:     10.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
HEALTH = '(APIServer pid=7) INFO:     10.0.0.1:1 - "GET /health HTTP/1.1" 200 OK'


@pytest.mark.parametrize("good", [SAID, PROBED, TCP, SERVED, HEALTH])
def test_any_evidence_of_a_later_good_start_makes_a_cause_past(good: str) -> None:
    findings = findings_of([log_line(1, OUT_OF_MEMORY, instance="a"), log_line(60, good, instance="b")])
    assert [(each.kind, each.is_past) for each in findings] == [("gpu_memory", True)]


@pytest.mark.parametrize(
    "no_evidence",
    [
        'INFO:     10.0.0.1:1 - "GET /health HTTP/1.1" 503 Service Unavailable',
        'INFO:     10.0.0.1:1 - "GET /metrics HTTP/1.1" 200 OK',
        'INFO:     10.0.0.1:1 - "GET /x?Application+startup+complete HTTP/1.1" 404 Not Found',
        "INFO 11-24 [logger.py:1] Received request chatcmpl-1: prompt: 'Application startup complete'",
        "INFO:     Waiting for application startup.",
        'STARTUP HTTP probe failed 1 time consecutively for container "llm-1" on port 8000 path "/health".',
    ],
)
def test_what_is_no_good_start_leaves_a_cause_present(no_evidence: str) -> None:
    findings = findings_of([log_line(1, OUT_OF_MEMORY, instance="a"), log_line(60, no_evidence, instance="b")])
    assert [(each.kind, each.is_past) for each in findings[:1]] == [("gpu_memory", False)]


def test_a_good_start_of_another_revision_or_before_is_no_evidence() -> None:
    cause = log_line(30, OUT_OF_MEMORY, instance="b")
    assert not findings_of([cause, log_line(60, SAID, instance="c", revision="r2")])[0].is_past
    # An instance that ran before and serves on says nothing about the start that failed beside it.
    assert not findings_of([log_line(1, SAID, instance="a"), cause, log_line(60, SERVED, instance="a")])[0].is_past
    # Nor does the good start of an instance that meets the cause later.
    assert not findings_of([log_line(1, SAID, instance="b"), cause])[0].is_past


def test_a_revision_that_the_platform_found_ready_is_evidence_too() -> None:
    ready = {"r1": "2026-09-21T14:00:30Z"}
    assert findings_of([log_line(1, OUT_OF_MEMORY)], ready=ready)[0].is_past
    assert not findings_of([log_line(31, OUT_OF_MEMORY)], ready=ready)[0].is_past
    assert not findings_of([log_line(1, OUT_OF_MEMORY, revision="r2")], ready=ready)[0].is_past


def life(instance: str, begin: int, end: int, *, answers: bool = True, how: str = "Container called exit(1).") -> Any:
    good = [platform(begin + 5, PROBED, instance)] if answers else []
    start = platform(begin, "Starting new instance. Reason: AUTOSCALING", instance)
    return [start, *good, platform(end, how, instance)]


def test_a_server_that_ends_repeatedly_is_a_present_cause_with_its_count() -> None:
    log = [*life("a", 0, 60), *life("b", 70, 130), *life("c", 140, 200), platform(205, PROBED, "d")]
    first, *_ = findings_of(log, now=NOW - 590)  # 5 s after the last good start
    assert (first.kind, first.is_past) == ("crash", False)
    assert "became healthy and then ended by itself" in first.cause
    assert (
        "again and again: 3 times since 14:01:00, last at 14:03:20; it had answered before (each time)" in first.cause
    )


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ((True, True), "it had answered before (each time)"),
        ((True, False), "it had answered before (1 times)"),
        ((False, False), "it had never answered before"),
    ],
)
def test_a_loop_says_whether_the_server_had_answered(answers: tuple[bool, bool], text: str) -> None:
    log = [*life("a", 0, 60, answers=answers[0]), *life("b", 70, 130, answers=answers[1])]
    first, *_ = findings_of(log, now=NOW)
    assert text in first.cause
    assert ("became healthy" in first.cause) == any(answers)


def test_one_end_and_ends_long_ago_are_no_loop() -> None:
    once = findings_of([*life("a", 0, 60), platform(70, PROBED, "b")], now=NOW)
    assert once == ()
    single = findings_of(life("a", 0, 60), now=NOW)
    assert "again and again" not in single[0].cause
    assert "became healthy and then" in single[0].cause
    over = findings_of([*life("a", 0, 10), *life("b", 12, 20), platform(25, PROBED, "c")], now=NOW)
    assert over == ()  # it has served for more than ten minutes since


def test_an_end_that_was_asked_for_is_no_cause() -> None:
    asked = "(APIServer pid=1) INFO 11-27 [launcher.py:254] [shutdown] API server: shutdown triggered"
    for how in ("Container called exit(0).", "Container terminated on signal 15."):
        log = [*life("a", 0, 60, how=how), *life("b", 70, 130, how=how)]
        assert findings_of(log, now=NOW)
        log[2:2] = [log_line(55, asked, instance="a")]
        log[-1:-1] = [log_line(125, asked, instance="b")]
        assert findings_of(log, now=NOW) == ()


@pytest.mark.parametrize(
    ("how", "is_loop"),
    [
        ("Container terminated on signal 15.", False),
        ("Container called exit(143).", False),
        ("Container terminated on signal 9.", True),
        ("Container called exit(137).", True),
        ("Container called exit(0).", True),
    ],
)
def test_stops_by_the_platform_are_no_loop(how: str, is_loop: bool) -> None:
    log = [*life("a", 0, 60, how=how), *life("b", 70, 130, how=how)]
    assert any("again and again" in each.cause for each in findings_of(log, now=NOW)) == is_loop


def test_a_caller_s_words_hide_no_end() -> None:
    caller_text = "Received request cmpl-1: prompt: '[shutdown] API server: shutdown triggered', params: None"
    log = [*life("a", 0, 60), *life("b", 70, 130)]
    log[2:2], log[-1:-1] = [log_line(55, caller_text, instance="a")], [log_line(125, caller_text, instance="b")]
    assert "again and again: 2 times" in findings_of(log, now=NOW)[0].cause


def test_a_recorded_shutdown_that_was_asked_for_has_no_cause() -> None:
    record = [row.partition(" ")[2] for row in (VLLM / "log/serve.log").read_text().splitlines() if row[:3] != "---"]
    assert any("EngineDeadError" in text for text in record)
    assert findings_of(lines(*record)) == ()
    # An engine that died by itself is one.
    died = [row.partition(" ")[2] for row in (VLLM / "log/engine-death.log").read_text().splitlines()]
    assert kinds(findings_of(lines(*died)))[0] == "engine"


def test_a_named_cause_of_a_loop_is_present_with_its_count() -> None:
    killed = "Memory limit of 16384 MiB exceeded. Consider increasing the memory limit."
    log = [*life("a", 0, 60, how=killed), *life("b", 70, 130, how=killed), platform(135, PROBED, "c")]
    first, *_ = findings_of(log, now=NOW - 600)
    assert (first.kind, first.is_past) == ("host_memory", False)
    assert "again and again: 2 times" in first.cause


SERVING = ReadRevision(name="r1", percent=100, is_newest=False)
REFUSED = ReadRevision(name="r2", percent=0, is_newest=True, is_ready=False)


def test_causes_of_serving_and_newest_revision_are_told_apart() -> None:
    log = [log_line(1, "OSError: [Errno 28] No space left on device", instance="a"),
           log_line(9, OUT_OF_MEMORY, instance="b", revision="r2")]  # fmt: skip
    failed = Condition("Ready", "CONDITION_FAILED", "HEALTH_CHECK_CONTAINER_ERROR", "failed the startup probe")
    findings = findings_of(log, (failed,), revisions=(SERVING, REFUSED))
    assert [(each.kind, each.revision) for each in findings] == [("disk", "r1"), ("gpu_memory", "r2")]
    assert [each.part for each in findings] == [
        "100 % of the traffic",
        "the newest one, which did not become ready, no traffic",
    ]
    # The newest one's condition explains nothing about the one that serves.
    only = findings_of(log[1:], (failed,), revisions=(SERVING, REFUSED))
    assert [each.revision for each in only] == ["r2"]


def logged_request(second: int, status: int, message: str = "") -> LoggedRequest:
    return LoggedRequest(f"2026-09-21T14:{second // 60:02}:{second % 60:02}Z", status, message, "r1")


ABORTED = "The request was aborted because there was no available instance."


def test_requests_that_the_platform_refuses_are_a_cause_in_words() -> None:
    (finding,) = findings_of(
        (),
        requests=[logged_request(1, 200), logged_request(2, 429, ABORTED), logged_request(3, 429, ABORTED)],
        stack="dev",
    )
    assert (finding.kind, finding.source, finding.is_past) == ("requests_no_instance", "requests", False)
    assert finding.cause.startswith("2 of 3 requests got HTTP 429: Cloud Run had no free instance")
    assert "scaling.max_instances" in finding.repair


def test_past_refusals_and_refused_strangers_are_no_present_cause() -> None:
    """Callers who are all refused now are a present cause."""
    burst = [logged_request(1, 429, ABORTED), *(logged_request(second, 200) for second in range(660, 700))]
    assert [each.is_past for each in findings_of((), requests=burst, now=NOW)] == [True]
    stranger = [
        logged_request(600, 403, "The request was not authenticated."),
        *(logged_request(700 + n, 200) for n in range(9)),
    ]
    assert findings_of((), requests=stranger, now=NOW) == ()
    locked_out = [logged_request(700 + n, 403, "The request was not authenticated.") for n in range(9)]
    assert [each.is_past for each in findings_of((), requests=locked_out, now=NOW)] == [False]
    assert findings_of((), requests=[logged_request(1, 200)]) == ()


def test_the_words_of_a_refused_model_name_are_no_evidence() -> None:
    error = (
        f"(APIServer pid=1) ERROR 11-27 [serving.py:274] Error with model error=ErrorInfo(message='{OUT_OF_MEMORY}')"
    )
    assert findings_of(lines(error)) == ()
