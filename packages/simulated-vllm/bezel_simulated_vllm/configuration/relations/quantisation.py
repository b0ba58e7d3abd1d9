"""Quantisation while the weights load, as `--quantization-config` asks for it (vllm 0.32.0, config/quantization.py).

Leaves `--quantization` and the checkpoint's own method to `bezel_simulated_vllm.configuration.checks`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.configuration.failures import refusal

if TYPE_CHECKING:
    import argparse

    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint

_KEYS = (
    *("fp8_per_block_dynamic", "fp8_per_block_static", "fp8_per_channel_static", "fp8_per_tensor_dynamic"),
    *("fp8_per_tensor_static", "fp8_per_token", "int4_per_group_32", "int8_per_channel_static", "mxfp4", "mxfp8"),
    "nvfp4_per_token",
)
# Forms of a whole layer, by the kinds of layers that they have.
_FORMS = dict.fromkeys(
    ("fp8_per_block", "fp8_per_channel", "fp8_per_tensor", "mxfp4", "mxfp8"), ("linear", "moe")
) | dict.fromkeys(("int8_per_channel_weight_only", "nvfp4_per_token"), ("moe",))
_LAYERS = ("linear", "moe")


def quantisation_error(config: dict[str, Any]) -> str:
    """Return the field and the text of the first refusal by the configuration's class; "" where it takes the value."""
    for key, value in config.items():
        if key not in (*_LAYERS, "ignore", "targets"):
            return f"{key}\nUnexpected keyword argument [type=unexpected_keyword_argument]"
        refused = _layer(key, value) if key in _LAYERS else _targets(value) if key == "targets" else ""
        if refused:
            return refused
    layers = {key: config.get(key) for key in _LAYERS}
    if config.get("targets") is not None and any(value is not None for value in layers.values()):
        return (
            "quantization_config.targets is mutually exclusive with quantization_config.linear/moe, got "
            f"targets={config['targets']}, linear={layers['linear']}, moe={layers['moe']}."
        )
    return ""


def _layer(kind: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        if kind not in _FORMS.get(value, (kind,)):
            return f"{kind}\nonline shorthand {value!r} does not define a {kind} spec"
        return "" if value in _FORMS else _key(kind, value)
    if not isinstance(value, dict):
        return f"{kind}\nInput should be an object [type=dataclass_type]"
    for key, name in value.items():
        if key not in ("weight", "activation"):
            return f"{kind}.{key}\nUnexpected keyword argument [type=unexpected_keyword_argument]"
        if refused := _key(f"{kind}.{key}", name):
            return refused
    return ""


def _key(field: str, name: object) -> str:
    if name is None or name in _KEYS:
        return ""
    return f"{field}\nunknown quantization name {name!r}; expected one of {sorted(_KEYS)}"


def _targets(value: object) -> str:
    if not isinstance(value, dict):
        return ""  # refused by its type, in `fields.py`
    for pattern, form in value.items():
        if form not in _FORMS:
            forms = sorted(_FORMS)
            return f"targets\ntargets[{pattern}] = {form} is not a valid online shorthand name; expected one of {forms}"
        if pattern.startswith("re:"):
            try:
                re.compile(pattern[3:])
            except re.error as error:
                return f"targets\ntargets key {pattern} is not a valid regex: {error}"
    return ""


def check_online(options: argparse.Namespace, model: Checkpoint) -> None:
    """Check that something is quantised, and no layers that are stored in a form of their own.

    Raises:
        StartError: with the text of vLLM.
    """
    config = options.quantization_config
    if not isinstance(config, dict):
        return
    if not any(config.get(key) for key in (*_LAYERS, "targets")):
        raise refusal("nothing-quantized")
    if model.quantisation is not None and config.get("linear") is not None:
        raise refusal("quantized-twice")
