"""Forms of quantised weights by `quantization_config`: tensors that are packed, their bits, and those that are scales.

Source: the loaders of vLLM 0.32.0 under `vllm/model_executor/layers/quantization/`, a module for each method, and its
normalisation of the configuration (`vllm/transformers_utils/model_arch_config_convertor.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_catalog.architectures.configuration import read_configuration

if TYPE_CHECKING:
    from collections.abc import Mapping

# Endings of tensors that stand beside a weight: scales, zero points, permutations, shapes, states of a format.
_BESIDE = re.compile(
    r"(?:^|[._])(?:scales?|scale_inv|weight_scale(?:_2|_inv)?|weight_global_scale|input_scale|input_global_scale|"
    r"activation_scale|zero_point|weight_zero_point|qzeros|g_idx|weight_g_idx|weight_shape|absmax|nested_absmax|"
    r"quant_map|nested_quant_map|SCB|weight_format|k_scale|v_scale|q_scale|prob_scale|k_zero_point|v_zero_point|"
    r"bitsandbytes__\w+|meta)$"
)
_PACKED = re.compile(r"(?:qweight|weight_packed|_blocks)$")
_INTEGERS = ("I32", "U32", "U8", "I8", "I64")
_BY_TYPE = {"BF16": "bf16", "F16": "fp16", "F32": "fp32", "F64": "fp64", "I8": "w8a8"}
_FLOAT8 = "F8_"


@dataclass(frozen=True, slots=True)
class Form:
    """How a checkpoint stores its weights.

    `method` is the quantisation's name, empty for plain weights. `bits` are those of one packed weight; 0 where
    none is packed. `name` is the encoding of a packed checkpoint.
    """

    method: str = ""
    bits: int = 0
    name: str = ""

    def numbers(self, tensor: str, kind: str, elements: int, element_bits: int) -> int:
        """Weights that a tensor stands for: 0 for scales, more than its elements for a packed one."""
        if not self.method:
            return elements
        if _BESIDE.search(tensor):
            return 0
        if self.bits and kind in _INTEGERS and self._is_packed(tensor, kind):
            return elements * element_bits // self.bits
        return elements

    def encoding(self, most: str) -> str:
        """The form by the type of most bytes: the catalogue's names bf16, fp8 and w4a16, else vLLM's."""
        if self.name and (most in _INTEGERS or most.startswith((_FLOAT8, "F4"))):
            return self.name
        if most.startswith(_FLOAT8):
            return "fp8"
        return _BY_TYPE.get(most, most.lower() or "unknown")

    def _is_packed(self, tensor: str, kind: str) -> bool:
        if _PACKED.search(tensor):
            return True
        # bitsandbytes and modelopt pack into the weight itself; gpt-oss packs experts into blocks.
        return kind == "U8" and self.bits < 8 and tensor.endswith("weight")


def read_form(config: Mapping[str, Any]) -> Form:
    """The form of the weights that a config.json describes.

    Raises:
        ConfigError: it is not the configuration of a model.
    """
    quantisation = _quantisation(config)
    method = str(quantisation.get("quant_method") or "").lower().replace("_", "-")
    if not method and quantisation.get("producer"):
        method = "modelopt"
    match method:
        case "":
            return Form()
        case "gptq" | "awq" | "auto-round" | "gptq-marlin" | "awq-marlin" | "inc":
            bits = int(quantisation.get("bits") or quantisation.get("w_bit") or 4)
            return Form(method, bits, f"w{bits}a16")
        case "compressed-tensors":
            return _compressed_tensors_form(quantisation)
        case "bitsandbytes":
            four = bool(quantisation.get("load_in_4bit"))
            return Form(method, 4 if four else 8, "bnb-4bit" if four else "bnb-8bit")
        case "mxfp4" | "gpt-oss-mxfp4":
            return Form(method, 4, "mxfp4")
        case "modelopt" | "modelopt-fp4" | "modelopt-mixed":
            return _modelopt_form(method, quantisation)
        case "fp8" | "fbgemm-fp8" | "ptpc-fp8" | "deepseek-v4-fp8":
            return Form(method, 0, "fp8")
    return Form(method, 0, method)


def _quantisation(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The quantisation of the whole, else that of the language model."""
    for values in (config, read_configuration(config).values):
        for key in ("quantization_config", "compression_config"):
            value = values.get(key)
            if isinstance(value, dict):
                return value
    return {}


def _compressed_tensors_form(quantisation: Mapping[str, Any]) -> Form:
    """compressed-tensors: bits of the first group of weights, and whether activations are quantised too."""
    method, layout = "compressed-tensors", str(quantisation.get("format") or "")
    groups = quantisation.get("config_groups")
    rows = [row for row in groups.values() if isinstance(row, dict)] if isinstance(groups, dict) else []
    weights: dict[str, Any] = next((row["weights"] for row in rows if isinstance(row.get("weights"), dict)), {})
    bits = int(weights.get("num_bits") or 0)
    activations = any(isinstance(row.get("input_activations"), dict) for row in rows)
    if "nvfp4" in layout or "mxfp4" in layout:
        return Form(method, 4, "nvfp4" if "nvfp4" in layout else "mxfp4")
    if weights.get("type") == "float" and bits == 8:
        return Form(method, 0, "fp8")
    packed = bits if "pack" in layout or not layout else 0
    return Form(method, packed, f"w{bits}a{8 if activations else 16}" if bits else method)


def _modelopt_form(method: str, quantisation: Mapping[str, Any]) -> Form:
    inner = quantisation.get("quantization")
    rows = inner if isinstance(inner, dict) else quantisation
    algorithm = str(rows.get("quant_algo") or quantisation.get("quant_algo") or "").upper()
    if "NVFP4" in algorithm or method == "modelopt-fp4":
        return Form(method, 4, "nvfp4")
    if "W4A8" in algorithm or "W4A16" in algorithm:
        return Form(method, 4, algorithm.lower().replace("_awq", ""))
    return Form(method, 0, "fp8")
