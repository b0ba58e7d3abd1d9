"""Load clients that were not written here, unmodified, through the front of a service with a simulated vLLM."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.clients import environment, programs
from tests.support.clients.programs import ClientCall
from tests.support.clients.service import NAME, service
from tests.support.clients.tokenizer import write_tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.clients]

REQUESTS, INPUT, OUTPUT = 20, 64, 16
SECONDS = 300


@pytest.fixture(scope="module")
def variables(tmp_path_factory):
    with service(tmp_path_factory.mktemp("service")) as service_variables:
        yield service_variables


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def run(variables, command, folder) -> str:
    """Run a load client in a folder; its output, which is shown if it fails."""
    ended = subprocess.run(
        [str(part) for part in command], env=variables, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-6000:]
    return ended.stdout


def check(client: str, loads: dict[str, tuple[int, int, int]]) -> None:
    """Assert that each load was complete, and record them.

    Args:
        client: Name and version.
        loads: (completed requests, failed requests, output tokens) of each load.
    """
    expected = (REQUESTS, 0, REQUESTS * OUTPUT)
    calls = [
        ClientCall(client, name, "passed" if counts == expected else "failed", f"{counts}, not {expected}")
        for name, counts in loads.items()
    ]
    programs.assert_served(calls)
    programs.check_openai(calls)


def server(variables) -> str:
    return variables["OPENAI_BASE_URL"].removesuffix("/v1")


def test_aiperf_measures_every_request_that_it_sends(variables, tokenizer, tmp_path):
    loads, version = {}, ""
    for endpoint in ("chat", "completions"):
        folder = tmp_path / endpoint
        folder.mkdir()
        command = [
            environment.python("aiperf").with_name("aiperf"), "profile", "--model", NAME, "--url", server(variables),
            "--api-key", variables["OPENAI_API_KEY"], "--endpoint-type", endpoint, "--streaming",
            "--tokenizer", tokenizer, "--use-server-token-count", "--concurrency", "4",
            "--request-count", f"{REQUESTS}", "--prompt-input-tokens-mean", f"{INPUT}",
            "--prompt-output-tokens-mean", f"{OUTPUT}", "--extra-inputs", "ignore_eos:true", "--ui", "none",
            "--output-artifact-dir", folder,
        ]  # fmt: skip
        run(variables, command, folder)
        result = json.loads((folder / "profile_export_aiperf.json").read_text())
        version = result["aiperf_version"]
        failed = result.get("error_request_count", {"avg": 0})["avg"]
        tokens = result["total_usage_completion_tokens"]["avg"]
        loads[f"profile --endpoint-type {endpoint}"] = (int(result["request_count"]["avg"]), int(failed), int(tokens))
    check(f"aiperf {version}", loads)


def test_guidellm_measures_every_request_that_it_sends(variables, tokenizer, tmp_path):
    loads, version = {}, ""
    for path in ("/v1/chat/completions", "/v1/completions"):
        out = tmp_path / f"{path.rpartition('/v1/')[2].replace('/', '-')}.json"
        backend = f"kind=openai_http,target={server(variables)},model={NAME},request_format={path}"
        backend += f",api_key={variables['OPENAI_API_KEY']}"
        command = [
            environment.python("guidellm").with_name("guidellm"), "run", "--backend", backend,
            "--profile", "kind=concurrent,streams=4", "--constraint", f"kind=max_requests,count={REQUESTS}",
            "--tokenizer", f"kind=huggingface_auto,model={tokenizer}",
            "--data", f"kind=synthetic_text,prompt_tokens={INPUT},output_tokens={OUTPUT}",
            "--output", f"kind=json,path={out}", "--disable-console-interactive",
        ]  # fmt: skip
        run(variables | {"HF_HUB_OFFLINE": "1"}, command, tmp_path)
        result = json.loads(out.read_text())
        version, metrics = result["metadata"]["guidellm_version"], result["benchmarks"][0]["metrics"]
        totals = metrics["request_totals"]
        tokens = metrics["output_token_count"]["successful"]["total_sum"]
        loads[f"run, {path}"] = (totals["successful"], totals["errored"] + totals["incomplete"], int(tokens))
    check(f"guidellm {version}", loads)


def test_vllm_bench_serve_measures_every_request_that_it_sends(variables, tokenizer, tmp_path):
    folder = os.environ.get("BEZEL_REAL_VLLM")
    if folder is None:
        pytest.skip("BEZEL_REAL_VLLM names no folder with a real vLLM (see tools/vllm/contract.py)")
    own_variables = {"OPENAI_API_KEY": variables["OPENAI_API_KEY"], "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    loads = {}
    for backend, path in (("openai-chat", "/v1/chat/completions"), ("openai", "/v1/completions")):
        command = [
            Path(folder) / "venv" / "bin" / "vllm", "bench", "serve", f"--backend={backend}", f"--endpoint={path}",
            f"--base-url={server(variables)}", f"--model={NAME}", f"--tokenizer={tokenizer}", "--dataset-name=random",
            f"--random-input-len={INPUT}", f"--random-output-len={OUTPUT}", f"--num-prompts={REQUESTS}",
            "--max-concurrency=4", "--ignore-eos", "--save-result", f"--result-dir={tmp_path}",
            f"--result-filename={backend}.json",
        ]  # fmt: skip
        run(variables | own_variables, command, tmp_path)
        result = json.loads((tmp_path / f"{backend}.json").read_text())
        loads[f"bench serve --backend {backend}"] = (
            result["completed"],
            result["failed"],
            result["total_output_tokens"],
        )
    check("vllm 0.32.0", loads)


def test_a_load_without_an_identity_completes_no_request(variables, tokenizer, tmp_path):
    """The negative twin: refused requests are counted as failed."""
    command = [
        environment.python("aiperf").with_name("aiperf"), "profile", "--model", NAME, "--url", server(variables),
        "--api-key", "sk-wrong", "--endpoint-type", "chat", "--tokenizer", tokenizer, "--concurrency", "2",
        "--request-count", "4", "--prompt-input-tokens-mean", f"{INPUT}", "--ui", "none",
        "--output-artifact-dir", tmp_path,
    ]  # fmt: skip
    ended = subprocess.run(
        [str(part) for part in command], env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    out = tmp_path / "profile_export_aiperf.json"
    assert "401" in ended.stdout + ended.stderr + (out.read_text() if out.exists() else "")
    assert not out.exists() or "request_count" not in json.loads(out.read_text())
