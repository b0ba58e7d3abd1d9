"""The attention backend: vLLM's selection for Gemma 4 on a GPU, and the validation of the selected one.

Sources: vllm 0.32.0, platforms/cuda.py (get_attn_backend_cls), v1/attention/backend.py (validate_configuration),
model_executor/models/config.py (Gemma4Config). What each backend takes is recorded for heads of 256 and 512 numbers,
those of Gemma 4; a model with others is not validated. The TPU plugin takes any name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_catalog.vllm.attention_backends import AttentionBackend, attention_backends
from bezel_simulated_vllm.configuration.failures import refusal
from bezel_simulated_vllm.configuration.relations.encoder import longest_item

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint

_HEADS = (256, 512)
_SHORT = {"half": "float16", "float": "float32", "auto": "bfloat16"}
# What these import once they have passed the validation, which asks for no AMD GPU and no CPU.
_ABSENT = {
    "ROCM_AITER_UNIFIED_ATTN": ("ModuleNotFoundError", "No module named 'aiter'"),
    "CPU_ATTN": ("AttributeError", "'_OpNamespace' '_C' object has no attribute 'compute_slot_mapping_kernel_impl'"),
}


def check_attention(
    options: argparse.Namespace, model: Checkpoint, capability: str, environment: Mapping[str, str]
) -> None:
    """Check the backend of each kind of layer, in the order of the layers.

    Args:
        options: the parsed command line.
        model: the served model.
        capability: compute capability of the GPU, e.g. "8.9".
        environment: the container's environment.

    Raises:
        StartError: the backend does not serve a layer.
    """
    config = options.attention_config if isinstance(options.attention_config, dict) else {}
    if not (model.sliding_layers and model.full_layers) or (model.sliding_head_dim, model.full_head_dim) != _HEADS:
        return
    chosen = _upper(options.attention_backend or config.get("backend"))
    if chosen is None and capability.partition(".")[0] not in ("9", "10", "11"):
        chosen = "TRITON_ATTN"  # FlashAttention 4 runs on none of the others
    kinds = config.get("backend_per_kind") or {}
    inputs = "images" if model.bidirectional_images and longest_item(options, model) else "text"
    for layer, kind in (("window", "sliding_window"), ("full", "full_attention")):
        name = _upper(kinds.get(kind)) or chosen
        if name is None:
            continue
        backend = attention_backends()[name]
        if backend.missing.startswith("ModuleNotFoundError"):
            raise refusal("attention-backend-invalid", name=name, reasons=f"[{backend.missing}]")
        if backend.missing:
            raise refusal("attention-backend-missing", reason=backend.missing)
        always, types = backend.refuses[capability][inputs][layer], backend.kv_cache_dtypes
        taken = types[capability][inputs] if types else ()
        if reasons := list(_reasons(backend, always, taken, options, environment)):
            raise refusal("attention-backend-invalid", name=name, reasons=reasons)
        _check_class(name, model)


def check_attention_options(options: argparse.Namespace) -> None:
    """Check that one option names the backend.

    Raises:
        StartError: two do.
    """
    config = options.attention_config
    if options.attention_backend and isinstance(config, dict) and config.get("backend"):
        raise refusal("two-attention-backends")


def _check_class(name: str, model: Checkpoint) -> None:
    """Check what the class of a validated backend does when it is made."""
    if name == "FLEX_ATTENTION" and model.shared_sliding_layers + model.shared_full_layers:
        raise refusal("flex-attention-sharing")
    if name in _ABSENT:
        kind, text = _ABSENT[name]
        raise refusal("attention-backend-foreign", kind=kind, text=text)


def _upper(name: Any) -> str | None:
    return None if not name or str(name).upper() == "AUTO" else str(name).upper()


def _reasons(
    backend: AttentionBackend,
    always: tuple[str, ...],
    taken: tuple[str, ...],
    options: argparse.Namespace,
    environment: Mapping[str, str],
) -> Iterator[str]:
    """Return vLLM's reasons against a layer, in its order."""
    yield from (text for text in always if text == "head_size not supported")
    if backend.dtypes:
        dtype, block = _SHORT.get(str(options.dtype), str(options.dtype)), options.block_size
        if dtype not in backend.dtypes:
            yield "dtype not supported"
        if options.kv_cache_dtype not in taken:
            yield "kv_cache_dtype not supported"
        if block and not any(block % size == 0 for size in backend.block_sizes):
            yield "block_size not supported"
    later = [text for text in always if text != "head_size not supported"]
    yield from (text for text in later if text.endswith("not supported"))
    if backend.dtypes:
        if environment.get("VLLM_BATCH_INVARIANT") == "1" and not backend.batch_invariant:
            yield "batch invariance not supported"
        if options.prefill_context_parallel_size > 1 and not backend.pcp:
            yield "PCP not supported"
        if options.decode_context_parallel_size > 1 and not backend.dcp:
            yield "DCP not supported"
    yield from (text for text in later if not text.endswith("not supported"))
