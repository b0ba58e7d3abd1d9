"""Options of multimodal input at start, in the words of vLLM 0.32.0 and of Gemma 4's image processor.

Source: vllm 0.32.0, config/multimodal.py, config/vllm.py and model_executor/models/gemma4_mm.py; transformers 5.19,
image_processing_gemma4.py. Leaves the tokens of items to `encoder.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_catalog import vllm_options
from bezel_simulated_vllm.configuration.failures import refusal
from bezel_simulated_vllm.configuration.relations.encoder import longest_item

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint

_SIZES = (70, 140, 280, 560, 1120)
_TORCH = ("cpu", "cuda", "xpu", "xla", "tpu", "meta", "mps", "hip", "hpu", "mtia")


def check_processor(options: argparse.Namespace, model: Checkpoint, *, tpu: bool) -> None:
    """Check the multimodal options of a model that takes more than text.

    Raises:
        StartError: with the text of the first validator that refuses.
    """
    if not model.multimodal:
        return
    if options.mm_processor_cache_type != "shm" and options.mm_shm_cache_max_object_size_mb != 128:
        raise refusal("shm-object-size")
    _check_scales(options)
    _check_backend(options.mm_encoder_attn_backend, options.release)
    kwargs: dict[str, Any] = options.mm_processor_kwargs or {}
    _check_device(kwargs.get("device"), accelerator="tpu" if tpu else "cuda")
    if longest_item(options, model):
        _check_size(kwargs, measured=not tpu and not options.skip_mm_profiling, asked=model.audio_tokens > 0)


def _check_scales(options: argparse.Namespace) -> None:
    read, saved = options.mm_encoder_fp8_scale_path, options.mm_encoder_fp8_scale_save_path
    if options.mm_encoder_attn_dtype != "fp8" and (read is not None or saved is not None):
        raise refusal("encoder-scales")
    if read is not None and saved is not None:
        raise refusal("encoder-scales-both")


def _check_backend(name: str | None, release: str) -> None:
    backends = vllm_options(release).registered["attention-backend"]
    if name is not None and name.upper() == "XFORMERS":
        raise refusal("xformers")
    if name is not None and name.upper() not in backends:
        raise refusal("encoder-backend", name=name, known=", ".join(each for each in backends if each != "auto"))


def _check_device(device: object, *, accelerator: str) -> None:
    if device is None:
        return
    kind = device.partition(":")[0] if isinstance(device, str) else accelerator
    if kind not in _TORCH:
        raise refusal("processor-device", device=device)
    if kind == accelerator:
        raise refusal("processor-accelerator", device=kind)


def _check_size(kwargs: Mapping[str, Any], *, measured: bool, asked: bool) -> None:
    """Check the size of images: the engine processes one when it measures its memory.

    The processor itself is made before, in the API process, where the length of audio is asked of it.
    """
    size, nested = kwargs.get("max_soft_tokens"), kwargs.get("images_kwargs")
    inner = nested.get("max_soft_tokens") if isinstance(nested, dict) else None
    if size is not None:
        if (measured or asked) and not _is_size(size):
            raise refusal("soft-tokens" if asked else "soft-tokens-measured", known=_SIZES, size=size)
    elif measured and inner is not None and not _is_size(inner):
        raise refusal("soft-tokens-inner", known=_SIZES, size=inner)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _SIZES
