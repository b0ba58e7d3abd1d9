"""States of fixed size: state-space layers, linear attention, short convolutions.

Source: vLLM 0.32.0, `vllm/model_executor/layers/mamba/mamba_utils.py` (MambaStateShapeCalculator and
MambaStateDtypeCalculator); the formula stands at each function. A convolution keeps its last kernel - 1 inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_catalog.architectures.layers import StateArray, StateLayers

if TYPE_CHECKING:
    from bezel_catalog.architectures.configuration import Configuration

_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "fp8": 1}


def type_bytes(name: object) -> int | None:
    """Bytes of a type by its name, None for the model's own."""
    return _BYTES.get(str(name).removeprefix("torch."))


def mamba1(inner: int, state: int, kernel: int) -> StateLayers:
    """Mamba: convolution (kernel - 1) x inner, state inner x state."""
    arrays = (StateArray(split=(kernel - 1) * inner), StateArray(split=inner * state))
    return StateLayers(count=1, form="mamba1", arrays=arrays)


def mamba2(
    inner: int, *, groups: int, heads: int, head_dim: int, state: int, kernel: int, state_bytes: int | None = None
) -> StateLayers:
    """Mamba 2: convolution (kernel - 1) x (inner + 2 x groups x state), state heads x head_dim x state.

    Where prefixes are cached, a prefill keeps one block more (`MambaMixer2.get_kv_cache_spec`).
    """
    convolution = StateArray(split=(kernel - 1) * inner, grouped=(kernel - 1) * 2 * groups * state, groups=groups)
    temporal = StateArray(split=heads * head_dim * state, element_bytes=state_bytes)
    return StateLayers(count=1, form="mamba2", arrays=(convolution, temporal), checkpoints=1)


def delta_net(config: Configuration, state_bytes: int | None = None) -> StateLayers:
    """Gated delta net: convolution (kernel - 1) x (2 x keys + values), state value heads x value dim x key dim."""
    key_dim, value_dim = config.number("linear_key_head_dim"), config.number("linear_value_head_dim")
    values = config.number("linear_num_value_heads")
    width = 2 * key_dim * config.number("linear_num_key_heads") + value_dim * values
    arrays = (
        StateArray(split=(config.number("linear_conv_kernel_dim") - 1) * width),
        StateArray(split=values * value_dim * key_dim, element_bytes=state_bytes),
    )
    return StateLayers(count=1, form="gdn_attention", arrays=arrays, key_dim=key_dim)


def linear_attention(heads: int, head_dim: int) -> StateLayers:
    """Linear attention: heads x head_dim x head_dim."""
    return StateLayers(count=1, form="linear_attention", arrays=(StateArray(split=heads * head_dim * head_dim),))


def delta_attention(heads: int, head_dim: int, kernel: int) -> StateLayers:
    """Kimi delta attention: convolution (kernel - 1) x 3 x heads x head_dim, state heads x head_dim² in float32."""
    arrays = (
        StateArray(split=(kernel - 1) * 3 * heads * head_dim),
        StateArray(split=heads * head_dim * head_dim, element_bytes=4),
    )
    return StateLayers(count=1, form="kda", arrays=arrays)


def short_convolution(width: int, kernel: int) -> StateLayers:
    """A short convolution: (kernel - 1) x width."""
    return StateLayers(count=1, form="short_conv", arrays=(StateArray(split=(kernel - 1) * width),))
