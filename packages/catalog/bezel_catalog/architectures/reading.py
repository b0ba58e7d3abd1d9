"""Reader of a `config.json`: the architecture of a model, or what of it cannot be computed and why.

Owns the choice of the module that reads the layers: by the class that vLLM builds for the language model. The modules
stand beside this one, a family each.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from bezel_catalog.architectures.architecture import Architecture
from bezel_catalog.architectures.configuration import (
    ConfigError,
    Configuration,
    MissingFieldError,
    class_names,
    read_configuration,
)
from bezel_catalog.architectures.context import read_context
from bezel_catalog.architectures.experts import read_experts
from bezel_catalog.architectures.families import attention, deepseek_v4, encoders, hybrids, latent, loops, side_caches
from bezel_catalog.architectures.layers import Layers, UnknownLayers
from bezel_catalog.architectures.registry import known_architecture, recorded_releases, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Reader = Callable[[Configuration], list[Layers]]

__all__ = ["ConfigError", "merge_layers", "read_architecture"]

_MODALITIES = (("vision_config", "image"), ("audio_config", "audio"), ("encoder_config", "audio"))

_READERS: dict[str, Reader] = {
    "alice_ai": hybrids.read_alice,
    "bailing_hybrid": hybrids.read_bailing,
    "bailing_moe_linear": hybrids.read_bailing,
    "bailing_moe_v3": hybrids.read_bailing_v3,
    "deepseek_v4": deepseek_v4.read_deepseek_v4,
    "domyn_edge": attention.read_listed_windows,
    "dory": loops.read_dory,
    "falcon_h1": hybrids.read_falcon_h1,
    "falcon_mamba": hybrids.read_mamba,
    "granitemoehybrid": hybrids.read_granite_hybrid,
    "jamba": hybrids.read_jamba,
    "kimi_linear": hybrids.read_kimi_linear,
    "lfm2": hybrids.read_short_convolution,
    "lfm2_moe": hybrids.read_short_convolution,
    "mamba": hybrids.read_mamba,
    "mamba2": hybrids.read_mamba2,
    "nemotron_h": hybrids.read_nemotron_h,
    "nemotron_h_puzzle": hybrids.read_nemotron_h,
    "olmo_hybrid": hybrids.read_delta_net,
    "qwen3_next": hybrids.read_delta_net,
    "qwen3_5": hybrids.read_delta_net,
    "qwen3_5_text": hybrids.read_delta_net,
    "qwen3_5_moe": hybrids.read_delta_net,
    "qwen3_5_moe_text": hybrids.read_delta_net,
    "zamba2": hybrids.read_zamba2,
    "llama4": attention.read_chunked,
    "llama4_text": attention.read_chunked,
    "hy_v4": latent.read_hunyuan_v4,
    "inkling_model": side_caches.read_inkling,
    "inkling_text": side_caches.read_inkling,
    "minimax_m3": side_caches.read_minimax_m3,
    "minimax_m3_text": side_caches.read_minimax_m3,
    "mimo_v2": attention.read_own_windows,
    "mimo_v2_flash": attention.read_own_windows,
    "step3p5": attention.read_own_windows,
    "whisper": encoders.read_whisper,
    "cohere_asr": encoders.read_decoder_with_encoder,
    "nemotron_parse": encoders.read_decoder_with_encoder,
}
# Readers by the first letters of a class, where the type in a file does not say which one it is.
_CLASS_READERS: dict[str, Reader] = {
    "BailingMoeV3": hybrids.read_bailing_v3,
    "IQuestLoopCoder": loops.read_loops,
    "Pangu": latent.read_pangu,
    "Step3Text": attention.read_one_head,
    "Step3VL": attention.read_one_head,
}
UNKNOWN_CACHES = {
    "deepseek_v41": "windows that are replayed and rings of raw keys beside compressed vectors",
    "dots3_note": "an index and vectors padded to those of its windows, packed by the GPU's kernels",
    "glm5_next": "pooled keys of an index and a ring of raw ones beside delta attention, packed by the kernels",
    "glm5_next_text": "pooled keys of an index and a ring of raw ones beside delta attention, packed by the kernels",
    "muse_spark_text": "windows by a list of its own and draft layers of its own",
    "musespark1x_text": "windows by a list of its own and draft layers of its own",
    "qwen4_exp": "pooled keys, rings of raw ones and states of two sizes, packed by the GPU's kernels",
    "qwen4_exp_text": "pooled keys, rings of raw ones and states of two sizes, packed by the GPU's kernels",
    "step5": "summaries of blocks and rings of raw keys beside keys and values, packed by the GPU's kernels",
}
"""Model types with a cache of their own kind, whose layout no formula here describes, and what is in it."""


def read_architecture(
    config: Mapping[str, Any], *, name: str = "", source: str = "config.json", as_of: str = ""
) -> Architecture:
    """The architecture of a model from its configuration.

    Args:
        config: the content of config.json.
        name: id of the architecture; its model type where none is given.
        source: where the file comes from, for the row.
        as_of: when it was read, YYYY-MM.

    Raises:
        ConfigError: it is not the configuration of a model.
    """
    part = read_configuration(config)
    classes = class_names(config)
    model_type = str(config.get("model_type") or part.model_type)
    layers = _read_layers(part, classes[0] if classes else "")
    hidden_layers = _hidden_layers(part, layers)
    experts = read_experts(part, hidden_layers or sum(group.count for group in layers))
    return Architecture(
        id=name or model_type,
        model_type=model_type,
        hidden_size=_number(part, ("hidden_size", "d_model")),
        intermediate_size=_number(part, ("intermediate_size", "ffn_dim", "n_inner", "decoder_ffn_dim")),
        attention_heads=attention.attention_heads(part),
        cache=merge_layers(layers),
        context=read_context(part),
        vocabulary=_number(part, ("vocab_size",)),
        modalities=_modalities(config),
        as_of=as_of,
        source=source,
        experts=experts.count,
        active_experts=experts.chosen,
        expert_intermediate_size=experts.width,
        expert_layers=experts.layers,
        class_name=classes[0] if classes else "",
        hidden_layers=hidden_layers,
        tied_embeddings=bool(part.get("tie_word_embeddings", default=True)),
    )


def _read_layers(part: Configuration, class_name: str) -> list[Layers]:
    for model_type in (part.model_type, str(part.whole.get("model_type"))):
        if model_type in UNKNOWN_CACHES:
            return [UnknownLayers(count=1, reason=f"{model_type} has {UNKNOWN_CACHES[model_type]}")]
    if reason := _registry_refusal(part, class_name):
        return [UnknownLayers(count=1, reason=reason)]
    try:
        return _reader(part, class_name)(part)
    except MissingFieldError as error:
        return [UnknownLayers(count=1, reason=f"config.json gives no {error.args[0]}, which {part.model_type} needs")]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Each formula takes its fields as its class writes them; a file from anywhere may have any value in them.
        reason = f"config.json has a value that {part.model_type} cannot have ({error})"
        return [UnknownLayers(count=1, reason=reason)]


def _registry_refusal(part: Configuration, class_name: str) -> str | None:
    """Why no recorded release of vLLM serves a model, None where one does."""
    if not class_name:
        return "config.json names no architecture in `architectures`, so vLLM does not know what to build"
    releases = recorded_releases()
    reasons = [refusal(class_name, release) for release in releases]
    if all(reasons):
        return reasons[-1]
    candidates = [architecture for release in releases if (architecture := known_architecture(class_name, release))]
    if all(not architecture.base for architecture in candidates) and part.whole.get("is_encoder_decoder"):
        return f"vLLM serves {class_name} by transformers' class, and no decoder with an encoder in this way"
    return None


def _reader(part: Configuration, class_name: str) -> Reader:
    if encoders.is_encoder(part, class_name):
        return encoders.read_encoder
    for prefix, reader in _CLASS_READERS.items():
        if class_name.startswith(prefix):
            return reader
    if part.model_type in _READERS:
        return _READERS[part.model_type]
    return latent.read_latent if latent.is_latent(part) else attention.read_decoder


def merge_layers(layers: Iterable[Layers]) -> tuple[Layers, ...]:
    """Groups of equal layers, in the order of their first layer."""
    counts: dict[Layers, int] = {}
    for layer in layers:
        one = dataclasses.replace(layer, count=1)
        counts[one] = counts.get(one, 0) + layer.count
    return tuple(dataclasses.replace(one, count=count) for one, count in counts.items())


def _number(config: Configuration, names: tuple[str, ...]) -> int:
    """A number of the configuration, 0 where it gives none."""
    value = config.get(*names)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _modalities(config: Mapping[str, Any]) -> tuple[str, ...]:
    thinker = config.get("thinker_config")
    values = thinker if isinstance(thinker, dict) else config
    kinds = ["text", *(kind for key, kind in _MODALITIES if isinstance(values.get(key), dict))]
    if config.get("model_type") == "whisper":
        kinds.append("audio")
    return tuple(dict.fromkeys(kinds))


def _hidden_layers(config: Configuration, layers: Iterable[Layers]) -> int:
    try:
        count = attention.layer_count(config)
    except MissingFieldError:
        return 0
    return 0 if sum(group.count for group in layers) == count else count
