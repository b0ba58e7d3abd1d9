"""Kernels of experts and of linear layers that the model's weights or the GPU cannot use.

vLLM 0.32.0 takes any name while it parses, and refuses a kernel where it makes the layers
(model_executor/layers/fused_moe/oracle, model_executor/kernels/linear). A linear kernel that has no form for the
encoding is left out with a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import of_option
from bezel_catalog.vllm.kernels import OPTIONS, refused_kernels

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem
    from bezel_catalog import Model

_LAYERS = {"moe-backend": "experts", "linear-backend": "layers"}
_OF_DEEPSEEK = "flashinfer_moe_ep_mega_deep_gemm"  # refused by bezel.planner.vllm.device.parallel_checks


def check_kernels(values: Mapping[str, Any], model: Model, capability: str) -> Iterator[Problem]:
    """Refuse kernels with which the model's layers cannot be made on this GPU.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        capability: compute capability of the GPU, e.g. "8.9".
    """
    config = values.get("kernel-config")
    config = config if isinstance(config, dict) else {}
    for option in OPTIONS:
        key = option.replace("-", "_")
        if (option == "moe-backend" and not model.architecture.experts) or config.get(f"{key}_per_quant"):
            continue
        where, chosen = option, values.get(option)
        if chosen in (None, "auto"):  # else the option takes the place of the configuration's
            where, chosen = f"kernel-config.{key}", config.get(key)
        name = chosen.lower().replace("-", "_") if isinstance(chosen, str) else ""
        if name == "exllama" and values.get("dtype") in ("float16", "half"):
            continue  # it refuses bfloat16, in which Gemma 4 computes where dtype is not set
        refused = refused_kernels(option, model.encoding, capability)
        if name in refused and name != _OF_DEEPSEEK:
            consequence = f"it does not serve {model.encoding} {_LAYERS[option]} on a GPU of compute capability "
            consequence += f"{capability}: vLLM exits once it makes the layers."
            yield of_option(where, chosen, consequence, "remove it: vLLM chooses the kernel by itself.")
