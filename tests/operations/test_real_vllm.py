"""Operations against a real vLLM of this machine: query, memory, metrics and advice, on the tiny model that it serves.

BEZEL_REAL_VLLM names a folder with `venv/bin/vllm` and `models/tiny-gemma4`; without it these are skipped.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.advise.advise import AdviseArguments, advise
from bezel.operations.memory.memory import MemoryArguments, memory
from bezel.operations.metrics.metrics import MetricsArguments, metrics
from bezel.operations.query.query import QueryArguments, query
from tests.support.operations.deployed import (
    SERVICE,
    Deployed,
    deployed_stack,
    live_service,
    service_resource,
    state_of,
)
from tests.support.operations.log_server import LogServer
from tests.support.real_vllm import TIMEOUT, real_vllm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT)]
SECRET = "hf_Pl4ntedSecretValue0123456789abcdefghij"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address and the log of a running vLLM."""
    with real_vllm(tmp_path_factory.mktemp("vllm")) as running:
        yield running


@pytest.fixture
def cloud(real: tuple[str, Path], tmp_path: Path) -> Iterator[Deployed]:
    """A deployment whose address is the real server, and whose log is its own."""
    url, log = real
    with deployed_stack(tmp_path) as deployment:
        resource = service_resource(invokerIamDisabled=True)
        deployment.keep("dev", state_of(resource, url=url, model="tiny-gemma4", plan={"fit": {"max_model_len": 8192}}))
        deployment.live[SERVICE] = live_service(scaling={"minInstanceCount": 1})
        lines: Any = LogServer(deployment)
        for text in log.read_text(errors="replace").splitlines():
            lines.add(text, 60)
        lines.add(f"ERROR login with {SECRET} failed", 61)
        yield deployment


def test_a_query_is_answered_with_the_server_s_own_counts(cloud: Deployed) -> None:
    result = query(cloud.context, QueryArguments(stack="dev", prompt="What is Gemma?", max_tokens=8, stats=True))
    assert result.finish_reason in {"stop", "length"}
    assert result.stats is not None
    assert result.stats.prompt_tokens
    assert result.stats.output_tokens
    assert result.model == "tiny-gemma4"
    assert result.stats.ttft_seconds is not None
    assert result.stats.server_ttft_seconds is not None, result.stats.server_ttft_not_judged
    assert 0 < result.stats.server_ttft_seconds <= result.stats.ttft_seconds
    assert result.stats.between == ""


def test_an_answer_is_shown_in_pieces_as_the_server_sends_them(cloud: Deployed) -> None:
    shown: list[str] = []
    context = replace(cloud.context, pieces=shown.append)
    result = query(context, QueryArguments(stack="dev", prompt="What is Gemma?", max_tokens=64))
    assert len(shown) > 4
    assert "".join(shown).rstrip("\n") == result.answer.rstrip("\n")


def test_memory_is_that_of_the_log_and_of_the_metrics(cloud: Deployed) -> None:
    result = memory(cloud.context, MemoryArguments(stack="dev"))
    figures = {each.name: each for each in result.figures}
    assert figures["kv_cache"].measured == pytest.approx(0.0625)
    assert figures["kv_tokens"].measured
    assert "/metrics" in figures["kv_tokens"].measured_origin
    assert "log" in figures["max_model_len"].measured_origin
    assert figures["max_model_len"].measured == 4096
    assert figures["gpu_memory_utilization"].measured
    assert figures["total"].measured is None
    assert result.notes == ()
    assert "another setting than the plan" in result.findings[0]


def test_a_plan_of_another_model_is_not_compared(cloud: Deployed) -> None:
    planned = {"fit": {"max_model_len": 8192, "kv_cache_gib": 9.0}, "weights": {"model": "/mnt/models/gemma-4-e2b"}}
    resource = service_resource(invokerIamDisabled=True)
    cloud.keep("dev", state_of(resource, url=cloud.context.deployment("dev").url, model="tiny-gemma4", plan=planned))
    result = memory(cloud.context, MemoryArguments(stack="dev"))
    assert {each.deviation for each in result.figures} == {None}
    assert result.findings == ()
    assert "not judged: the server runs" in result.notes[-1]


def test_its_metrics_have_figures(cloud: Deployed) -> None:
    query(cloud.context, QueryArguments(stack="dev", prompt="What is Gemma?", max_tokens=8))
    result = metrics(cloud.context, MetricsArguments(stack="dev"))
    values = {each.name: each.value for each in result.figures}
    assert values["ttft"]
    assert values["running"] == 0
    assert result.processes_seen == 1


def test_a_model_of_random_weights_is_noise_beside_rules_that_are_none(cloud: Deployed) -> None:
    result = advise(cloud.context, AdviseArguments(stack="dev", max_tokens=64))
    assert result.advice is not None, result.notes
    assert result.advice.standing == "noise"
    assert result.advice.finish_reason in {"stop", "length"}
    assert result.advice.sent_lines > 5
    assert SECRET not in result.model_dump_json()
    assert {each.source for each in result.findings} <= {"metrics"}
    assert "at the server" in (result.first_token or "")
    assert "not judged" not in (result.first_token or "")
