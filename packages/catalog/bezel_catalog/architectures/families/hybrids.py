"""Models whose layers keep states, alone or beside layers with keys and values.

Source: vLLM 0.32.0, the model of the same name under `vllm/model_executor/models/`
(get_mamba_state_shape_from_config, and the construction of its layers); vLLM's own settings of a state's type:
`vllm/model_executor/models/config.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bezel_catalog.architectures.families.attention import (
    Heads,
    attention_heads,
    attention_layer,
    head_dimension,
    heads_by_layer,
    key_value_heads,
    layer_count,
)
from bezel_catalog.architectures.families.latent import is_latent, latent_layer
from bezel_catalog.architectures.families.layer_types import layer_types, sliding_window
from bezel_catalog.architectures.families.states import (
    delta_attention,
    delta_net,
    linear_attention,
    mamba1,
    mamba2,
    short_convolution,
    type_bytes,
)
from bezel_catalog.architectures.layers import FullLayers, LatentLayers, Layers, PlainLayers, UnknownLayers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel_catalog.architectures.configuration import Configuration
    from bezel_catalog.architectures.layers import StateLayers

# Names of a layer's kind, of today's transformers and of older files; Nemotron-H writes one letter a layer.
_ATTENTION = frozenset(("full_attention", "attention", "*"))
_STATE = frozenset(("linear_attention", "mamba", "mamba2", "conv", "recurrent", "M"))
_PLAIN = frozenset(("mlp", "moe", "-", "E"))
_BOTH = frozenset(("hybrid", "hybrid_mamba"))


def _mix(kinds: Sequence[str], state: StateLayers, attention: Layers) -> list[Layers]:
    """Layers of a hybrid model by their kinds."""
    layers: list[Layers] = []
    for kind in kinds:
        if kind in _BOTH:
            layers += [attention, state]
        elif kind in _ATTENTION:
            layers.append(attention)
        elif kind in _STATE:
            layers.append(state)
        elif kind in _PLAIN:
            layers.append(PlainLayers(count=1))
        else:
            layers.append(UnknownLayers(count=1, reason=f"layers of kind {kind!r} are not known in this model"))
    return layers


def _attention(config: Configuration, window: int | None = None) -> Layers:
    return attention_layer(Heads(key_value_heads(config), head_dimension(config)), window)


def read_mamba(config: Configuration) -> list[Layers]:
    """Mamba and Falcon Mamba: no attention at all (mamba.py)."""
    state = mamba1(config.number("intermediate_size"), config.number("state_size"), config.number("conv_kernel"))
    return [replace(state, cached_prefixes=False)] * layer_count(config)


def read_mamba2(config: Configuration) -> list[Layers]:
    """Mamba 2: no attention at all (mamba2.py)."""
    state = mamba2(
        int(config.get("expand", default=2) * config.number("hidden_size")),
        groups=config.number("n_groups"),
        heads=config.number("num_heads"),
        head_dim=config.number("head_dim"),
        state=config.number("state_size"),
        kernel=config.number("conv_kernel"),
    )
    return [replace(state, cached_prefixes=False)] * layer_count(config)


def read_jamba(config: Configuration) -> list[Layers]:
    """Jamba: attention in every `attn_layer_period`-th layer, Mamba in the others (jamba.py)."""
    state = mamba1(
        config.number("mamba_expand") * config.number("hidden_size"),
        config.number("mamba_d_state"),
        config.number("mamba_d_conv"),
    )
    period, offset = config.number("attn_layer_period"), config.number("attn_layer_offset")
    kinds = ["attention" if layer % period == offset else "mamba" for layer in range(layer_count(config))]
    return _mix(config.texts("layers_block_type") or kinds, state, _attention(config))


def _named_mamba2(config: Configuration, inner: int) -> StateLayers:
    """Mamba 2 by the fields of Granite and Falcon H1."""
    heads, width = config.number("mamba_n_heads"), config.get("mamba_d_head")
    return mamba2(
        inner,
        groups=config.number("mamba_n_groups"),
        heads=heads,
        head_dim=width if isinstance(width, int) else inner // heads,
        state=config.number("mamba_d_state"),
        kernel=config.number("mamba_d_conv"),
    )


def read_falcon_h1(config: Configuration) -> list[Layers]:
    """Falcon H1: attention and Mamba 2 side by side in every layer (falcon_h1.py)."""
    default = int(config.get("mamba_expand", default=2) * config.number("hidden_size"))
    state = _named_mamba2(config, config.number("mamba_d_ssm", default=default))
    return _mix(["hybrid"] * layer_count(config), state, _attention(config))


def read_granite_hybrid(config: Configuration) -> list[Layers]:
    """Granite 4 hybrids: kinds by `layer_types` (granitemoehybrid.py)."""
    state = _named_mamba2(config, int(config.get("mamba_expand", default=2) * config.number("hidden_size")))
    kinds = config.texts("layer_types") or config.texts("layers_block_type") or ["mamba"] * layer_count(config)
    return _mix(kinds, state, _attention(config))


def read_nemotron_h(config: Configuration) -> list[Layers]:
    """Nemotron-H: a letter a layer, states in float32 unless the file says otherwise (nemotron_h.py, config.py)."""
    pattern = config.values.get("hybrid_override_pattern")
    kinds = list(pattern) if isinstance(pattern, str) else []
    kinds = kinds or config.texts("layers_block_type") or config.texts("layer_types")
    heads, head_dim = config.number("mamba_num_heads"), config.number("mamba_head_dim")
    written = config.values.get("mamba_ssm_cache_dtype", "float32")
    only_here = str((config.whole.get("architectures") or [""])[0]).startswith("NemotronH")
    state = mamba2(
        heads * head_dim,
        groups=config.number("n_groups", "mamba_n_groups"),
        heads=heads,
        head_dim=head_dim,
        state=config.number("ssm_state_size"),
        kernel=config.number("conv_kernel", "mamba_d_conv"),
        state_bytes=type_bytes(written) if only_here else None,
    )
    return _mix(kinds, state, _attention(config, sliding_window(config)))


def read_zamba2(config: Configuration) -> list[Layers]:
    """Zamba 2: Mamba 2 in every layer, a shared transformer beside it in hybrid ones (zamba2.py)."""
    inner = int(config.get("mamba_expand", default=2) * config.number("hidden_size"))
    heads = config.number("n_mamba_heads")
    state = mamba2(
        inner,
        groups=config.number("mamba_ngroups"),
        heads=heads,
        head_dim=inner // heads,
        state=config.number("mamba_d_state"),
        kernel=config.number("mamba_d_conv"),
    )
    width = 2 * config.number("hidden_size") // attention_heads(config)
    attention = FullLayers(count=1, kv_heads=key_value_heads(config), head_dim=width)
    return _mix(config.texts("layers_block_type"), state, attention)


def read_delta_net(config: Configuration) -> list[Layers]:
    """Qwen 3 Next, Qwen 3.5 and OLMo hybrids: gated delta nets beside full attention (qwen3_next.py, qwen3_5.py)."""
    count = layer_count(config)
    state = delta_net(config, type_bytes(config.get("mamba_ssm_dtype")) if "qwen3_5" in config.model_type else None)
    attention = heads_by_layer(config, count)
    kinds = layer_types(config, count)
    return [
        layer
        for kind, heads in zip(kinds, attention, strict=False)
        for layer in _mix([kind], state, attention_layer(heads, None))
    ]


def read_short_convolution(config: Configuration) -> list[Layers]:
    """LFM 2: short convolutions beside full attention (lfm2.py, lfm2_moe.py)."""
    width = config.values.get("conv_dim") or config.number("hidden_size")
    state = short_convolution(int(width), config.number("conv_L_cache"))
    kinds = config.texts("layer_types")
    if not kinds:
        full = config.get("full_attn_idxs")
        count = layer_count(config)
        kinds = ["full_attention" if not isinstance(full, list) or layer in full else "conv" for layer in range(count)]
    return _mix(kinds, state, _attention(config))


def read_bailing(config: Configuration) -> list[Layers]:
    """Bailing's linear models: one layer with keys and values in each group (bailing_moe_linear.py)."""
    size, count = config.number("layer_group_size", default=1), layer_count(config)
    heads = attention_heads(config)
    state = linear_attention(heads, config.number("head_dim", default=config.number("hidden_size") // max(heads, 1)))
    attention = latent_layer(config) if is_latent(config) else _attention(config)
    return [state if size > 0 and (layer + 1) % size else attention for layer in range(count)]


def read_bailing_v3(config: Configuration) -> list[Layers]:
    """Bailing V3: delta attention, a compressed vector in the last layer of each group and in those after the groups.

    Source: vLLM 0.32.0 and 0.33.0, `vllm/model_executor/models/bailing_moe_v3.py` (_is_kda_layer,
    BailingMoeV3KimiDeltaAttention.get_state_shape, BailingMoeV3MLAAttention with its defaults).
    """
    size, count = config.number("layer_group_size"), layer_count(config)
    grouped = count // size * size
    head_dim = config.number("head_dim")  # of the states; that of compressed vectors is another
    state = delta_attention(attention_heads(config), head_dim, config.number("short_conv_kernel_size"))
    width = config.number("kv_lora_rank", default=512) + config.number("qk_rope_head_dim", default=64)
    latent = LatentLayers(count=1, width=width)
    return [latent if (layer + 1) % size == 0 or layer >= grouped else state for layer in range(count)]


def read_alice(config: Configuration) -> list[Layers]:
    """Alice AI: delta attention beside full attention, by `layer_types` (vLLM 0.33.0, alice_ai.py)."""
    heads, head_dim = config.number("linear_num_key_heads"), config.number("linear_key_head_dim")
    state = delta_attention(heads, head_dim, config.number("linear_conv_kernel_dim"))
    return _mix(config.texts("layer_types"), state, _attention(config))


def read_kimi_linear(config: Configuration) -> list[Layers]:
    """Kimi Linear and Kimi K3: delta attention beside compressed vectors; layers count from one.

    Source: vLLM 0.32.0 and 0.33.0, `vllm/models/kimi_k3/nvidia/` (model.py, kda.py, mla.py).
    """
    rows = config.get("linear_attn_config") or {}
    full = set(rows.get("full_attn_layers") or ())
    state = delta_attention(
        int(rows.get("num_heads") or attention_heads(config)),
        int(rows.get("head_dim") or head_dimension(config)),
        int(rows.get("short_conv_kernel_size") or 4),
    )
    attention = latent_layer(config) if is_latent(config) else _attention(config)
    return [attention if layer + 1 in full else state for layer in range(layer_count(config))]
