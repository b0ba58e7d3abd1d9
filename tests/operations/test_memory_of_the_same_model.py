"""Memory of a real server of this machine that serves the planned model: what the model needs is judged."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bezel.operations.catalog.add_model import AddModelArguments, apply_add_model, plan_add_model
from bezel.operations.memory.memory import Memory, MemoryArguments, memory
from bezel.planner import make_plan
from tests.support.model_sources.tiny import LLAMA, as_json, llama, llama_tensors, size_of
from tests.support.operations.deployed import Deployed, service_resource, state_of
from tests.support.operations.log_server import LogServer
from tests.support.operations.model_server import ModelServer
from tests.support.rest.fake_google import Answer

METRICS = Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm/metrics.txt"
CACHE_BYTES = 64 << 20
TOKEN_BYTES = 2 * 2 * 16 * 2 * 2  # layers, KV heads, width, key and value, two bytes each
STACK = {
    "model": "tiny-llama",
    "accelerator": "nvidia-l4",
    "region": "us-east4",
    "weights": {"path": "tiny-llama"},
    "vllm": {"max-model-len": 8192},
}


@pytest.fixture
def folder(cloud: Deployed, tmp_path: Path) -> Path:
    """The model's folder, whose row the project has, with a stack that serves it."""
    files = tmp_path / "models" / "tiny-llama"
    files.mkdir(parents=True)
    for name, content in llama().items():
        (files / name).write_bytes(content)
    context = cloud.context
    config = {f"bezel:{key}": value for key, value in STACK.items()}
    (context.folder / "Pulumi.dev.yaml").write_text(json.dumps({"config": config}))
    apply_add_model(context, plan_add_model(context, AddModelArguments(model=str(files))))
    return files


def report(cloud: Deployed, root: Path, *, tokens: int = CACHE_BYTES // TOKEN_BYTES, dtype: str = "auto") -> Memory:
    """The report of a server that serves a folder with a cache of this many tokens."""
    LogServer(cloud)
    server = ModelServer(cloud)
    plan = make_plan(STACK, project="acme-llm", stack="dev", models=cloud.context.project.models())
    recorded = {"fit": plan.fit.as_output(), "weights": {"model": plan.weights.model}}
    cloud.keep("dev", state_of(service_resource(), url=cloud.server.url, model="tiny-llama", plan=recorded))
    text = METRICS.read_text().partition("\n\n")[2]
    labels = {"cache_dtype": dtype, "kv_cache_memory_bytes": CACHE_BYTES, "kv_cache_size_tokens": tokens}
    for name, value in labels.items():
        text = re.sub(rf'\b{name}="[^"]*"', f'{name}="{value}"', text)
    server.answers["/metrics"] = Answer(text=text)
    server.answers["/v1/models"] = Answer(json={"data": [{"id": "tiny-llama", "root": str(root)}]})
    return memory(cloud.context, MemoryArguments(stack="dev"))


def test_needs_of_the_model_are_judged_and_not_the_machine(cloud: Deployed, folder: Path) -> None:
    made = report(cloud, folder)
    figures = {each.name: each for each in made.figures}
    judged = {name: each.is_plan_wrong for name, each in figures.items() if each.is_plan_wrong is not None}
    assert judged == {"weights": False, "kv_token": False}
    assert figures["weights"].measured == pytest.approx(size_of(llama_tensors()) / 2**30, abs=1e-4)
    assert figures["kv_token"].measured == TOKEN_BYTES
    assert figures["kv_cache"].measured == CACHE_BYTES / 2**30
    assert "the same model, on another machine" in made.text()
    assert "0.27 MiB" in made.text()


def test_cache_of_another_size_a_token_is_a_mistake_of_the_plan(cloud: Deployed, folder: Path) -> None:
    made = report(cloud, folder, tokens=CACHE_BYTES // TOKEN_BYTES // 2)
    (finding,) = made.findings
    assert "KV cache of a token" in finding
    assert "fewer sequences fit" in finding


def test_cache_of_another_type_is_not_judged(cloud: Deployed, folder: Path) -> None:
    made = report(cloud, folder, tokens=CACHE_BYTES // TOKEN_BYTES * 2, dtype="fp8")
    assert {each.is_plan_wrong for each in made.figures if each.name == "kv_token"} == {None}
    assert made.findings == ()


def test_cache_of_a_window_is_not_judged_on_another_machine(cloud: Deployed, folder: Path) -> None:
    config = LLAMA | {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 256}
    (folder / "config.json").write_bytes(as_json(config))
    apply_add_model(cloud.context, plan_add_model(cloud.context, AddModelArguments(model=str(folder), replace=True)))
    made = report(cloud, folder, tokens=CACHE_BYTES // TOKEN_BYTES * 2)
    judged = {each.name for each in made.figures if each.is_plan_wrong is not None}
    assert judged == {"weights"}


def test_folder_of_another_model_is_not_judged(cloud: Deployed, folder: Path) -> None:
    (folder / "config.json").write_bytes(as_json(LLAMA | {"max_position_embeddings": 4096}))
    made = report(cloud, folder)
    assert {each.is_plan_wrong for each in made.figures} == {None}
    assert "not judged: the server runs" in made.text()
