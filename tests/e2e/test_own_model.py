"""A model outside of the catalogue: its row and one stack file, deployed, checked and measured on localcloud."""

import json
from pathlib import Path

import pytest

from tests.support.e2e.rehearsal import BOTH_PACKS, Rehearsal
from tests.support.model_sources.tiny import bert, llama
from tests.support.weights.fake_hub import serving

STACK = """config:
  bezel:model: tiny-llama
  bezel:accelerator: nvidia-l4
  bezel:region: us-east4
  bezel:weights: {path: tiny-llama}
  bezel:smoke: {requests: 4, output_tokens: 8, prompt_tokens: 32}
  bezel:cost: {max_hourly_usd: 1.10}
  bezel:labels: {owner: ml-platform, expires-at: never}
"""


@pytest.mark.wide
def test_model_of_a_folder_is_deployed_and_checked(rehearsal: Rehearsal, tmp_path: Path) -> None:
    files = tmp_path / "tiny-llama"
    files.mkdir()
    for name, content in llama().items():
        (files / name).write_bytes(content)
    (rehearsal.folder / "Pulumi.ours.yaml").write_text(STACK)
    refused = rehearsal.local("preview", "ours")
    assert refused.code == 1, refused.text
    assert "it is not in the catalogue" in refused.text

    added = rehearsal.bezel("catalog", "add-model", str(files), "--yes")
    assert added.code == 0, added.text
    deployed = rehearsal.local("up", "ours", "--", *BOTH_PACKS)
    assert deployed.code == 0, deployed.text
    assert "copied synthetic weights of tiny-llama" in deployed.text
    assert "completion, conditions, drift, health, models, plan, refusal: all passed" in deployed.text
    memory = rehearsal.bezel("memory", "ours", "--wake", **rehearsal.variables())
    assert memory.code == 0, memory.text
    assert "the plan was right" in memory.text
    gone = rehearsal.local("down", "ours")
    assert gone.code == 0, gone.text


@pytest.mark.wide
def test_adapters_of_a_stack_are_served_by_their_names(rehearsal: Rehearsal) -> None:
    adapters = "  bezel:adapters: [{name: sql, rank: 8}, {name: law, path: own/law, rank: 24}]\n"
    stack = STACK.replace("tiny-llama\n", "gemma-4-12b-it-qat-w4a16\n", 1).replace(
        "  bezel:weights: {path: tiny-llama}\n", adapters
    )
    (rehearsal.folder / "Pulumi.ours.yaml").write_text(stack)
    deployed = rehearsal.local("up", "ours", "--", *BOTH_PACKS)
    assert deployed.code == 0, deployed.text
    assert "adapters/sql" in deployed.text
    shown = rehearsal.bezel("models", "ours", **rehearsal.variables())
    assert shown.code == 0, shown.text
    assert "sql" in shown.text
    assert "law" in shown.text
    gone = rehearsal.local("down", "ours")
    assert gone.code == 0, gone.text


@pytest.mark.wide
def test_model_and_adapters_of_a_hub_are_downloaded_by_the_server(rehearsal: Rehearsal) -> None:
    adapters = "  bezel:adapters: [{name: sql, source: acme/sql-lora, rank: 8}]\n"
    stack = STACK.replace("  bezel:weights: {path: tiny-llama}\n", f"  bezel:weights: {{loading: hub}}\n{adapters}")
    (rehearsal.folder / "Pulumi.ours.yaml").write_text(stack)
    with serving() as hub:
        hub.models["acme/Tiny-Llama"] = llama()
        added = rehearsal.bezel("catalog", "add-model", "acme/Tiny-Llama", "--yes", HF_ENDPOINT=hub.base)
        assert added.code == 0, added.text
    deployed = rehearsal.local("up", "ours", "--", *BOTH_PACKS)
    assert deployed.code == 0, deployed.text
    assert "put synthetic weights of tiny-llama on the embedded hub, as acme/Tiny-Llama" in deployed.text
    assert "put an adapter of zeros on the embedded hub, as acme/sql-lora" in deployed.text
    assert "completion, conditions, drift, health, models, plan, refusal: all passed" in deployed.text
    shown = rehearsal.bezel("models", "ours", **rehearsal.variables())
    assert "sql" in shown.text
    memory = rehearsal.bezel("memory", "ours", "--wake", **rehearsal.variables())
    assert "the plan was right" in memory.text
    gone = rehearsal.local("down", "ours")
    assert gone.code == 0, gone.text


@pytest.mark.wide
def test_model_that_pools_is_checked_by_its_own_endpoint(rehearsal: Rehearsal, tmp_path: Path) -> None:
    files = tmp_path / "tiny-llama"
    files.mkdir()
    for name, content in bert().items():
        (files / name).write_bytes(content)
    (rehearsal.folder / "Pulumi.ours.yaml").write_text(STACK)
    added = rehearsal.bezel("catalog", "add-model", str(files), "--yes")
    assert added.code == 0, added.text
    assert "it is served at /pooling, /rerank, /score, /v1/embeddings" in added.text

    deployed = rehearsal.local("up", "ours", "--", *BOTH_PACKS)
    assert deployed.code == 0, deployed.text
    assert "conditions, drift, health, models, plan, pooling, refusal: all passed" in deployed.text
    assert "requests/s" in deployed.text or "busy machine" in deployed.text
    load = ("--users", "1", "--requests", "3", "--input-tokens", "32", "--out", "measured.json")
    measured = rehearsal.bezel("bench", "run", "--stack", "ours", *load, **rehearsal.variables())
    assert json.loads((rehearsal.folder / "measured.json").read_text())["cells"], measured.text
    assert '"endpoint": "embeddings"' in (rehearsal.folder / "measured.json").read_text()
    asked = rehearsal.bezel("query", "ours", "hello", "--wake", **rehearsal.variables())
    assert "64 numbers" in asked.text, asked.text
    memory = rehearsal.bezel("memory", "ours", "--wake", **rehearsal.variables())
    assert "its server has no KV cache" in memory.text, memory.text
    gone = rehearsal.local("down", "ours")
    assert gone.code == 0, gone.text
