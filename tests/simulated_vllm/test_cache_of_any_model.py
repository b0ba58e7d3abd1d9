"""KV cache of the simulated server for any architecture, beside what a real vLLM 0.32.0 laid out.

States of a sequence and what an encoder-decoder keeps of its encoder are not simulated: those models are left out.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from bezel_simulated_vllm.configuration.checkpoint import read_checkpoint
from bezel_simulated_vllm.configuration.kv_layout import kv_layout

RECORDED = json.loads(
    (Path(__file__).parents[2] / "packages/catalog/tests/architectures/layouts.json").read_text(encoding="utf-8")
)
LEFT_OUT = {"MambaSpec", "CrossAttentionSpec"}
CPU_BLOCK = 128
# The engine turned its groups of windows off by an option, which the simulated server does not do; the others keep
# something beside keys and values (inputs of convolutions, an index, parts of compressed vectors), which it leaves out.
NOT_SIMULATED = {"gemma3-no-hybrid", "default InklingForConditionalGeneration", "deepseek-v4", "minimax-m3"}
ROWS: dict[str, dict[str, Any]] = {
    name: row
    for name, row in RECORDED["models"].items()
    if row.get("groups") and row.get("tokens") and name not in NOT_SIMULATED
    if not LEFT_OUT & {group["spec"] for group in row["groups"]}
}


def test_most_recorded_models_are_compared() -> None:
    assert len(ROWS) > 200


@pytest.mark.parametrize("name", ROWS)
def test_tokens_of_the_cache_are_those_of_vllm(name: str, tmp_path: Path) -> None:
    row = ROWS[name]
    (tmp_path / "config.json").write_text(json.dumps(row["config"]))
    in_flight = row.get("in_flight") or row.get("batched")
    layout = kv_layout(
        read_checkpoint(tmp_path), dtype="auto", in_flight_tokens=in_flight, block=row.get("block") or CPU_BLOCK
    )
    blocks = (row.get("memory") or RECORDED["cache_bytes"]) // layout.block_bytes
    tokens = int(blocks / layout.max_blocks(row["max_model_len"]) * row["max_model_len"])
    assert tokens == pytest.approx(row["tokens"], rel=0.02)
