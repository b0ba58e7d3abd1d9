"""Operations against a real vLLM of this machine: query, memory, metrics and advice, on the tiny model that it serves.

BEZEL_REAL_VLLM names a folder with `venv/bin/vllm` and `models/tiny-gemma4`; without it these are skipped.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from bezel.operations.diagnosis.advise import AdviseArguments, advise
from bezel.operations.memory_layout.memory import MemoryArguments, memory
from bezel.operations.metrics import MetricsArguments, metrics
from bezel.operations.query import QueryArguments, query
from tests.support.operations.deployed import SERVICE, Deployed, deployed, live_service, service_resource, state_of
from tests.support.operations.log_server import LogServer

pytestmark = pytest.mark.slow
SECONDS = 400.0
SECRET = "hf_Pl4ntedSecretValue0123456789abcdefghij"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address and the log of a running vLLM."""
    folder = os.environ.get("BEZEL_REAL_VLLM")
    if folder is None:
        pytest.skip("BEZEL_REAL_VLLM names no folder with a real vLLM (see tools/vllm/contract.py)")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("vllm") / "serve.log"
    command = [
        *(f"{folder}/venv/bin/vllm", "serve", f"{folder}/models/tiny-gemma4", "--host=127.0.0.1", f"--port={port}"),
        *("--served-model-name=tiny-gemma4", "--dtype=bfloat16", "--enforce-eager", "--max-model-len=4096"),
        *("--max-num-seqs=8", "--kv-cache-memory-bytes=64M", "--generation-config=vllm"),
    ]
    variables = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "TORCHDYNAMO_DISABLE": "1",
        "PATH": f"{folder}/venv/bin:{os.environ['PATH']}",
    }
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=os.environ | variables, stdout=out, stderr=out, cwd=log.parent)
    try:
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + SECONDS
        while not _is_healthy(url):
            assert process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < end, log.read_text()[-2000:]
            time.sleep(0.5)
        yield url, log
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _is_healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture
def cloud(real: tuple[str, Path], tmp_path: Path) -> Iterator[Deployed]:
    """A deployment whose address is the real server, and whose log is its own."""
    url, log = real
    with deployed(tmp_path) as held:
        resource = service_resource(invokerIamDisabled=True)
        held.keep("dev", state_of(resource, url=url, model="tiny-gemma4", plan={"fit": {"max_model_len": 8192}}))
        held.live[SERVICE] = live_service(scaling={"minInstanceCount": 1})
        lines: Any = LogServer(held)
        for text in log.read_text(errors="replace").splitlines():
            lines.add(text, 60)
        lines.add(f"ERROR login with {SECRET} failed", 61)
        yield held


def test_a_query_is_answered_with_the_server_s_own_counts(cloud: Deployed) -> None:
    found = query(cloud.context, QueryArguments(stack="dev", prompt="What is Gemma?", max_tokens=8, stats=True))
    assert found.finish_reason in {"stop", "length"}
    assert found.stats is not None
    assert found.stats.prompt_tokens
    assert found.stats.output_tokens
    assert found.model == "tiny-gemma4"


def test_an_answer_is_shown_in_pieces_as_the_server_sends_them(cloud: Deployed) -> None:
    shown: list[str] = []
    context = replace(cloud.context, pieces=shown.append)
    found = query(context, QueryArguments(stack="dev", prompt="What is Gemma?", max_tokens=64))
    assert len(shown) > 4
    assert "".join(shown).rstrip("\n") == found.answer.rstrip("\n")


def test_memory_is_that_of_the_log_and_of_the_metrics(cloud: Deployed) -> None:
    found = memory(cloud.context, MemoryArguments(stack="dev"))
    figures = {each.name: each for each in found.figures}
    assert figures["kv_cache"].measured == pytest.approx(0.0625)
    assert figures["kv_tokens"].measured
    assert "/metrics" in figures["kv_tokens"].measured_origin
    assert "log" in figures["max_model_len"].measured_origin
    assert figures["max_model_len"].measured == 4096
    assert figures["gpu_memory_utilization"].measured
    assert figures["total"].measured is None
    assert found.notes == ()
    assert "another setting than the plan" in found.findings[0]


def test_its_metrics_have_figures(cloud: Deployed) -> None:
    query(cloud.context, QueryArguments(stack="dev", prompt="What is Gemma?", max_tokens=8))
    found = metrics(cloud.context, MetricsArguments(stack="dev"))
    values = {each.name: each.value for each in found.figures}
    assert values["ttft"]
    assert values["running"] == 0
    assert found.processes_seen == 1


def test_a_model_of_random_weights_is_noise_beside_rules_that_are_none(cloud: Deployed) -> None:
    found = advise(cloud.context, AdviseArguments(stack="dev", max_tokens=64))
    assert found.advice is not None, found.notes
    assert found.advice.standing == "noise"
    assert found.advice.finish_reason in {"stop", "length"}
    assert found.advice.sent_lines > 5
    assert SECRET not in found.model_dump_json()
    assert {each.source for each in found.findings} <= {"metrics"}
