"""Compiled graphs on a TPU: their number, compile time and cache, as in vLLM's TPU plugin (tpu-inference).

Pure rules, and the one file that represents the compiled graphs. Leaves refusals to `checks.py`, sizes and times to
`hardware.toml`, memory to `memory.py` and the phases of a start to `startup.py`. Not modelled: several hosts,
pipelines, LoRA.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel_simulated_vllm.configuration.hardware import Xla
    from bezel_simulated_vllm.configuration.settings import EngineSettings

PADDING_GAP = "VLLM_TPU_BUCKET_PADDING_GAP"
CACHE_PATH = "VLLM_XLA_CACHE_PATH"
_SMALLEST_BATCH = 16
_GB = 1e9


def batch_sizes(batched_tokens: int, gap: int) -> list[int]:
    """Return the sizes to which batches are padded; each is a graph of its own.

    Args:
        batched_tokens: the most tokens of a batch.
        gap: 0 to double the size each time; otherwise it is doubled up to the gap, which is then added each time.
    """
    sizes = [_SMALLEST_BATCH]
    while sizes[-1] < batched_tokens:
        sizes.append(sizes[-1] + gap if gap and sizes[-1] >= gap else sizes[-1] * 2)
    return sizes


class Graphs:
    """The graphs of one configuration: their number, compile time, and presence in the compile cache."""

    def __init__(self, settings: EngineSettings, environment: Mapping[str, str]) -> None:
        gap = environment.get(PADDING_GAP, "0")
        sizes = batch_sizes(settings.max_batched_tokens, int(gap) if gap.isdigit() else 0)
        self.count = len(sizes)
        self._settings = settings
        path = environment.get(CACHE_PATH)
        name = f"jit_step-{_key(settings, sizes)}-cache"
        self._file = settings.machine.resolve(path) / name if path else None

    @property
    def are_kept(self) -> bool:
        """Whether an earlier start has left them in the compile cache."""
        return self._file is not None and self._file.is_file()

    def seconds(self, xla: Xla) -> float:
        """Return the seconds to compile or load them."""
        each = xla.graph_seconds + xla.graph_seconds_per_gb * self._settings.model.weight_bytes / _GB
        return self.count * each * (xla.cached_share if self.are_kept else 1.0)

    def keep(self) -> None:
        """Store them in the compile cache; a cache that cannot be written is ignored, as by the real server."""
        if self._file is None or self.are_kept:
            return
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps({"graphs": self.count, "model": self._settings.model.architecture}))


def _key(settings: EngineSettings, sizes: list[int]) -> str:
    """Return the cache key, a hash of all that determines the graphs: release, chips, model's shape, lengths, types."""
    drafting = settings.speculation
    shape = (
        settings.release,
        settings.machine.accelerator.name,
        settings.tensor_parallel,
        repr(settings.model),
        settings.max_model_len,
        settings.max_num_seqs,
        sizes,
        settings.kv_cache_dtype,
        (drafting.method, drafting.tokens) if drafting else None,
    )
    return hashlib.sha256(json.dumps(shape).encode()).hexdigest()[:32]
