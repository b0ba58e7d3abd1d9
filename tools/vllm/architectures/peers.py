"""Figures of two public calculators, kvfit and hf-mem, called as libraries on the config.json of the recorded models.

    PYTHON tools/vllm/architectures/peers.py LAYOUTS OUT

PYTHON has both installed (`pip install kvfit==0.3.0 hf-mem==0.5.6`), LAYOUTS is the file that record.py writes. OUT
gets for each model the bytes of one sequence of its full length by each of them, or the error that it ends with, and
the bytes of its weights where the file lists its tensors. Imports nothing of this project.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def kvfit_bytes(row: dict[str, Any]) -> float:
    """Bytes of a sequence by kvfit's rules for the architecture, in 16 bits."""
    module: Any = importlib.import_module("kvfit.architectures")
    estimate = module.estimate_cache(row["config"], context_tokens=row["max_model_len"], kv_bytes=2.0)
    return float(estimate.total_bytes)


def hf_mem_bytes(row: dict[str, Any]) -> float:
    """Bytes of a sequence by hf-mem, in 16 bits; it reads the part of the text as its command does."""
    module: Any = importlib.import_module("hf_mem.safetensors.kv_cache")
    config = row["config"].get("text_config", row["config"])
    return float(module.compute_safetensors_kv_cache_size(config, "BF16", row["max_model_len"]))


def hf_mem_weights(row: dict[str, Any]) -> float:
    """Bytes of the weights by hf-mem, from a header of safetensors."""
    module: Any = importlib.import_module("hf_mem.safetensors.metadata")
    header = {
        name: {"dtype": kind, "shape": shape, "data_offsets": [0, 0]} for name, (kind, shape) in row["tensors"].items()
    }
    return float(module.parse_safetensors_metadata({"model": header}).bytes_count)


def attempt(name: str, count: Callable[[dict[str, Any]], float], row: dict[str, Any]) -> dict[str, Any]:
    """A figure under a name, or the error that it ends with."""
    try:
        return {name: count(row)}
    except Exception as error:  # noqa: BLE001 - whatever it ends with is the record
        return {f"{name}_error": f"{type(error).__name__}: {error}"[:200]}


def main() -> None:
    """Write the figures."""
    layouts, out = Path(sys.argv[1]), Path(sys.argv[2])
    content = json.loads(layouts.read_text(encoding="utf-8"))
    versions = {name: importlib.metadata.version(name) for name in ("kvfit", "hf-mem")}
    rows = {}
    for name, row in content["models"].items():
        if "groups" not in row:
            # What vLLM refuses: does a calculator refuse it as well?
            row = {**row, "max_model_len": 8192}  # noqa: PLW2901 - a length of the tiny models
        if "config" not in row:
            continue
        rows[name] = attempt("kvfit", kvfit_bytes, row) | attempt("hf_mem", hf_mem_bytes, row)
        if "tensors" in row:
            rows[name] |= attempt("hf_mem_weights", hf_mem_weights, row)
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    out.write_text(f'{{"versions": {json.dumps(versions)}, "models": {{\n{lines}\n}}}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
