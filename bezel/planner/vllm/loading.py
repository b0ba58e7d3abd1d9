"""Loading of weights onto the accelerator: four values of `weights.loading`, and their consequences for a stack.

Owns the table: the model argument, vLLM's options, the mount, the assumed speed. Facts of the streamer were read in the
source of vLLM 0.32.0 and of runai-model-streamer 0.17. Leaves refusals to bezel.planner.vllm.loading_checks and the
host's memory to bezel_catalog.sizing.memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.planner.vllm.arguments import MOUNT_PATH
from bezel.planner.vllm.host_options import offloaded_gib, read_host_options
from bezel_catalog.quantities import GIB
from bezel_catalog.sizing.host_memory import host_parts
from bezel_catalog.sizing.memory import host_loading_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.planner.vllm.engine_args import EngineArgs
    from bezel_catalog import Model
    from bezel_catalog.sizing.roofline import Range

# Host memory that the streamer may use. Its own default of 40 GB is more than most instances have; whatever is set, it
# uses at least the size of the largest tensor.
STREAMER_BUFFER_BYTES = 4 * GIB
# Keys that vLLM passes to the streamer; it exits on any other.
STREAMER_KEYS = ("concurrency", "distributed", "memory_limit")


@dataclass(frozen=True, slots=True)
class Loading:
    """One value of `weights.loading`.

    Attributes:
        id: its name.
        description: in one sentence.
        in_bucket: whether the files come from the stack's bucket; else from the hub.
        mounted: whether the bucket is mounted.
        options: of `vllm serve`; the stack file overrides them.
        load_formats: values of load-format that mean the same.
        load_strategies: values of safetensors-load-strategy that mean the same.
        bytes_per_second: speed of loading, (slow, fast).
        speed_source: basis of that speed.
    """

    id: str
    description: str
    in_bucket: bool
    mounted: bool
    options: Mapping[str, object]
    load_formats: tuple[str, ...]
    load_strategies: tuple[str, ...]
    bytes_per_second: Range
    speed_source: str

    def folder_prefix(self, bucket: str) -> str:
        """Prefix of model arguments that are folders of the bucket; "" where vLLM takes hub ids."""
        if self.mounted:
            return MOUNT_PATH
        return f"gs://{bucket}" if self.in_bucket else ""


_PLAIN = ("auto", "safetensors", "hf")
FUSE = Loading(
    id="fuse",
    description="the bucket is mounted; files are mapped one after the other and read page by page",
    in_bucket=True,
    mounted=True,
    options={"safetensors-load-strategy": "lazy"},
    load_formats=_PLAIN,
    load_strategies=("lazy",),
    bytes_per_second=(0.1e9, 0.4e9),
    speed_source="estimated: one reader at a time",
)
PREFETCH = Loading(
    id="fuse-prefetch",
    description="the bucket is mounted; all files are read ahead into the page cache, several at a time",
    in_bucket=True,
    mounted=True,
    options={"safetensors-load-strategy": "prefetch"},
    load_formats=_PLAIN,
    load_strategies=("prefetch",),
    # The slowest speed of a mount is not known; a cautious assumption.
    bytes_per_second=(0.1e9, 0.85e9),
    speed_source="estimated: at best what the streamer was reported to reach",
)
STREAMER = Loading(
    id="runai-streamer",
    description="nothing is mounted; Run:ai's streamer reads the objects, many ranges at a time, through a buffer",
    in_bucket=True,
    mounted=False,
    options={
        "load-format": "runai_streamer",
        "model-loader-extra-config": {"memory_limit": STREAMER_BUFFER_BYTES},
    },
    load_formats=("runai_streamer",),
    load_strategies=(),
    bytes_per_second=(0.2e9, 0.85e9),
    speed_source="fast: 58 GiB in 73 s, reported; slow: estimated",
)
HUB = Loading(
    id="hub",
    description="nothing is mounted; each instance downloads the files from the hub into its memory",
    in_bucket=False,
    mounted=False,
    options={"safetensors-load-strategy": "lazy"},
    load_formats=_PLAIN,
    load_strategies=("lazy",),
    bytes_per_second=(0.05e9, 0.3e9),
    speed_source="estimated: over the internet, within the hub's limits",
)
LOADINGS = {loading.id: loading for loading in (FUSE, PREFETCH, STREAMER, HUB)}


def loading_options(
    chosen: str | None, model: Model, memory_gib: int, values: Mapping[str, Any] | None = None
) -> Mapping[str, object]:
    """The options of `vllm serve` that the loading sets.

    Where the stack file chooses none: prefetching, the fastest from a bucket, if the host can hold the files beside the
    weights that stay in its memory.

    Args:
        chosen: `weights.loading`.
        model: the checkpoint.
        memory_gib: memory of the host.
        values: of the stack file's own options, by option name.
    """
    if chosen is not None:
        # A model that is pinned to a commit is downloaded from it.
        pinned = {"revision": model.commit} if chosen == HUB.id and model.commit else {}
        return {**LOADINGS[chosen].options, **pinned}
    needed = host_loading_bytes(model.weight_bytes, strategy="prefetch")
    offloaded = min(max(0, int(offloaded_gib(values or {}) * GIB)), model.weight_bytes)
    parts = host_parts(model, read_host_options(values or {}), offloaded_bytes=offloaded, shards=1)
    needed += sum(part.needed_bytes for part in parts if part.loading)
    return (PREFETCH if needed <= memory_gib * GIB else FUSE).options


def loading_of(chosen: str | None, engine: EngineArgs) -> Loading:
    """A stack's loading: the chosen one, else the one that its arguments mean."""
    if chosen is not None:
        return LOADINGS[chosen]
    return PREFETCH if engine.load_strategy == "prefetch" else FUSE
