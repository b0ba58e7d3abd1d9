"""Rules of the diagnosis: recorded failures have their cause, a request's words are no evidence, past is past."""

from pathlib import Path

import pytest

from bezel.operations.diagnosis.rules import Finding, findings_of, is_request
from bezel.operations.log_reading.entries import level_of
from bezel.operations.log_reading.lines import LogLine
from bezel.operations.vllm_metrics.figures import figures_of, outcomes_of
from bezel.operations.vllm_metrics.sample import parse
from smoke.platform import Condition

VLLM = Path(__file__).parents[1] / "fixtures" / "vllm"
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


def recorded(name: str) -> list[LogLine]:
    return lines(*(STARTS / f"{name}.log").read_text().splitlines())


def kinds(found: tuple[Finding, ...]) -> list[str]:
    return [each.kind for each in found]


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("kv_cache", "kv_cache", "lower vllm.max-model-len to 2688 or less"),
        ("parser", "argument", "correct it under `vllm`"),
        ("missing", "model_files", "copy them into the bucket"),
        ("argument", "argument", "remove it from `vllm`"),
        ("memory_taken", "crash", "correct the first error in the log"),
    ],
)
def test_a_recorded_failing_start_of_vllm_has_its_cause(name: str, kind: str, said: str) -> None:
    first, *_ = findings_of(recorded(name))
    assert first.kind == kind
    assert said in first.repair
    assert first.evidence
    assert first.at is not None
    assert not first.is_past


def test_a_recorded_start_that_was_healthy_has_none() -> None:
    assert findings_of(recorded("healthy")) == ()


def test_every_recorded_failing_start_is_explained() -> None:
    for block in (VLLM / "failing-starts.txt").read_text().split("### ")[1:]:
        command, _, *texts = block.splitlines()
        assert kinds(findings_of(lines(*texts))), command


def test_what_an_earlier_start_logged_is_past() -> None:
    found = findings_of([*recorded("kv_cache"), *recorded("healthy")])
    assert [(each.kind, each.is_past) for each in found] == [("kv_cache", True)]
    assert not findings_of([*recorded("healthy"), *recorded("kv_cache")])[0].is_past


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
    found = findings_of(lines(OUT_OF_MEMORY, OUT_OF_MEMORY, full))
    assert kinds(found) == ["gpu_memory", "disk"]


def test_the_platform_s_failure_is_evidence_too() -> None:
    quota = Condition("Ready", "CONDITION_FAILED", "", "Quota exceeded for total allowable count of GPUs")
    (found,) = findings_of((), (quota,))
    assert (found.kind, found.source) == ("quota", "platform")
    odd = Condition("Ready", "CONDITION_FAILED", "INTERNAL", "Something went wrong.")
    (found,) = findings_of((), (odd,))
    assert (found.kind, found.evidence) == ("unknown", str(odd))


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
    found = by_metrics((f"{WAITING}0.0", f"{WAITING}7.0"), (f"{USAGE}0.0", f"{USAGE}{usage}"))
    new = [each for each in found if each.kind not in quiet]
    assert [each.kind for each in new] == [kind]
    assert "waiting 7 requests" in new[0].evidence


def test_a_dead_engine_shows_in_the_metrics_by_its_failures() -> None:
    assert "success_rate" in kinds(by_metrics(name="engine-dead/metrics.txt"))
