"""Roofline of a measurement: the least work that the hardware must have done, against its peak.

Owns the two sums: arithmetic of tokens, and bytes that decoding reads. Both are lower bounds: attention, activations,
drafts and all other work of a step are left out, so a figure above the peak was not reached as counted. The peaks are
the catalogue's. Work of one token and bytes of one step are in `bezel_catalog.sizing.roofline`; conclusions on other
people's figures, where little is stated, are in `bezel_bench.audit.limits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bezel_catalog import Model
    from bezel_catalog.sizing.roofline import Peaks


@dataclass(frozen=True, slots=True)
class Hardware:
    """Serving hardware, fully known.

    Attributes:
        kv_element_bytes: Bytes of one element of the cache.
        instances: Each with `peaks.chips` chips.
    """

    model: Model
    peaks: Peaks
    kv_element_bytes: int
    instances: int


@dataclass(frozen=True, slots=True)
class Work:
    """Measured work.

    Attributes:
        input_tokens_per_second: Computed input tokens; None where unknown.
        sequences: The most sequences that ran at once, over all instances.
        tokens_per_step: Tokens that a sequence got in one step: 1 without drafts.
        prompt_tokens: Tokens of a prompt, on average.
    """

    input_tokens_per_second: float | None
    output_tokens_per_second: float
    sequences: int
    tokens_per_step: float
    prompt_tokens: float


@dataclass(frozen=True, slots=True)
class Shares:
    """The two sums and the peaks they are compared with, of all serving hardware."""

    flops: float
    peak_flops: float
    bytes_per_second: float
    peak_bytes_per_second: float


def hardware_of(
    checkpoint: str | None,
    accelerator: str | None,
    chips: int | None,
    instances: int | None,
    kv_cache_dtype: str | None,
) -> Hardware | str:
    """Return the hardware by its names in the catalogue, or the name of the missing value."""
    if not checkpoint:
        return "the checkpoint is not stated"
    # Imported late: the short benchmark of a deployment, which names no hardware, need not load catalogue and planner.
    from bezel_catalog import accelerators, models, tpus
    from bezel_catalog.sizing.kv_cache import KV_ELEMENT_BYTES
    from bezel_catalog.sizing.roofline import gpu_peaks, tpu_peaks

    model = models().get(checkpoint)
    if model is None:
        return _unknown("checkpoint", checkpoint, models())
    gpu, tpu = accelerators().get(accelerator or ""), tpus().get(accelerator or "")
    if gpu is None and tpu is None:
        names = [*accelerators(), *tpus()]
        return _unknown("accelerator", accelerator, names) if accelerator else "the accelerator is not stated"
    if instances is None:
        return "the number of instances is not stated"
    element = KV_ELEMENT_BYTES.get(kv_cache_dtype or "auto")
    if element is None:
        return f"the bytes of a KV cache in {kv_cache_dtype} are unknown"
    peaks = gpu_peaks(gpu, model, count=chips or 1) if gpu else tpu_peaks(tpu) if tpu else None
    return Hardware(model, peaks, element, instances) if peaks else "the accelerator is not stated"


def _unknown(kind: str, name: str, names: Iterable[str]) -> str:
    from bezel_catalog import closest

    near = closest(name, names)
    return f"{kind} {name!r} is not in the catalogue{f': perhaps {near}' if near else ''}"


def shares(work: Work, on: Hardware) -> Shares:
    """Return the least work that was done, and the most that was possible.

    Arithmetic: 2 operations for each active parameter and token. Bytes: decoding a number of tokens takes at least
    tokens / (sequences x tokens of a step) steps; each reads the weights once, and of each sequence the cache of its
    prompt.
    """
    from bezel_catalog.sizing.roofline import read_cache_bytes, read_weight_bytes, token_flops

    tokens = (work.input_tokens_per_second or 0.0) + work.output_tokens_per_second
    batch = max(1.0, work.sequences / on.instances)
    weights = read_weight_bytes(on.model, max(1, round(batch * work.tokens_per_step)))
    chips = on.peaks.chips
    cache = read_cache_bytes(on.model, round(work.prompt_tokens), element_bytes=on.kv_element_bytes, chips=chips)
    sequence_steps = work.output_tokens_per_second / work.tokens_per_step
    return Shares(
        flops=token_flops(on.model.architecture) * tokens,
        peak_flops=float(on.peaks.flops * chips * on.instances),
        bytes_per_second=sequence_steps / batch * weights + sequence_steps * cache,
        peak_bytes_per_second=float(on.peaks.bandwidth_bytes_per_s * chips * on.instances),
    )
