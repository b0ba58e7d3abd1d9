"""The attention backend against the model's layers, the device and the options that it has to serve.

Owns vLLM's selection for Gemma 4 on a GPU (platforms/cuda.py: get_attn_backend_cls; model_executor/models/config.py:
Gemma4Config) and the validation of the selected backend. tpu-inference takes any name and runs its own kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option, one_of
from bezel.planner.vllm.model.multimodal_checks import item_tokens
from bezel_catalog import closest
from bezel_catalog.vllm.attention_backends import attention_backends
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem
    from bezel_catalog import Model
    from bezel_catalog.vllm.attention_backends import AttentionBackend

DEFAULT = "TRITON_ATTN"
_OPTION, _CONFIG = "attention-backend", "attention-config"
_LAYERS = {"sliding_window": "window", "full_attention": "full"}
# vLLM 0.32.0, v1/kv_cache_interface.py (KVCacheSpecKind).
KINDS = (
    "chunked_local_attention",
    "cross_attention",
    "encoder_only_attention",
    "full_attention",
    "mamba",
    "mla_attention",
    "sink_full_attention",
    "sliding_window",
    "sliding_window_mla",
    "unknown",
)
# Capabilities at which FlashAttention 4 serves both kinds of layers, and vLLM leaves the choice open.
_OPEN = ("9.", "10.", "11.")
_FOREIGN = ("ROCM_", "CPU_", "XPU_", "AMX_")
_WORDS = {
    "head_size not supported": "it does not serve heads of {heads} numbers",
    "partial multimodal token full attention not supported": "tokens of an image cannot attend to each other in it",
    "compute capability not supported": "it does not run on a GPU of compute capability {capability}",
    "sliding window not supported": "it has no sliding window",
    "non-MLA not supported": "it is made for another kind of attention (MLA)",
}


@dataclass(frozen=True, slots=True)
class _Choice:
    """The backend of one kind of layer: its name, and the option that names it ("" for vLLM's own choice)."""

    name: str
    option: str


def check_attention(
    values: Mapping[str, Any], model: Model, capability: str, environment: Mapping[str, str]
) -> Iterator[Problem]:
    """Refuse a backend that cannot serve the model, and options that the backend does not take.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        capability: compute capability of the GPU, e.g. "8.9".
        environment: variables of the container.
    """
    config = values.get(_CONFIG)
    config = config if isinstance(config, dict) else {}
    if values.get(_OPTION) is not None and config.get("backend") is not None:
        consequence = f"attention-config sets backend too; vLLM refuses both together (mutually exclusive). {EXITS}"
        yield of_option(_OPTION, values[_OPTION], consequence, "remove one of them.")
        return
    if not model.is_gemma4:
        return  # what each backend serves is recorded for the heads and layers of Gemma 4
    backends = attention_backends()
    if unknown := list(_unknown(config)):
        yield from unknown
        return
    for layer, choice in _choices(values, config, capability).items():
        backend = backends.get(choice.name)
        if backend is None:  # an unknown name is refused by itself
            continue
        problems = list(_problems(values, model, capability, environment, backend, choice, layer))
        yield from problems
        if problems:
            return


def _unknown(config: Mapping[str, Any]) -> Iterator[Problem]:
    """Names in attention-config that vLLM does not know."""
    kinds = config.get("backend_per_kind")
    kinds = kinds if isinstance(kinds, dict) else {}
    names = tuple(attention_backends())
    named = {f"{_CONFIG}.backend": config.get("backend")}
    for kind, name in kinds.items():
        where = f"{_CONFIG}.backend_per_kind.{kind}"
        if kind not in KINDS:
            consequence = f"vLLM knows no layers of this kind: {EXITS}"
            yield of_option(where, name, consequence, one_of(KINDS, closest(str(kind), KINDS)))
        named[where] = name
    for where, name in named.items():
        if isinstance(name, str) and name.upper() not in (*names, "AUTO"):
            consequence = f"vLLM does not know this backend: {EXITS}"
            yield of_option(where, name, consequence, one_of(names, closest(name.upper(), names)))


def _choices(values: Mapping[str, Any], config: Mapping[str, Any], capability: str) -> dict[str, _Choice]:
    """The backend of each kind of layer; none where vLLM looks for one that fits."""
    option = _OPTION if values.get(_OPTION) is not None else f"{_CONFIG}.backend"
    name = _backend_name(values.get(_OPTION) or config.get("backend"))
    if name is None and not capability.startswith(_OPEN):
        name, option = DEFAULT, ""
    kinds = config.get("backend_per_kind")
    kinds = kinds if isinstance(kinds, dict) else {}
    choices = {
        layer: _Choice(named, f"{_CONFIG}.backend_per_kind.{kind}")
        if (named := _backend_name(kinds.get(kind)))
        else (_Choice(name, option) if name else None)
        for kind, layer in _LAYERS.items()
    }
    return {layer: choice for layer, choice in choices.items() if choice}


def _backend_name(value: object) -> str | None:
    name = value.upper() if isinstance(value, str) else None
    return None if name == "AUTO" else name


def _problems(
    values: Mapping[str, Any],
    model: Model,
    capability: str,
    environment: Mapping[str, str],
    backend: AttentionBackend,
    choice: _Choice,
    layer: str,
) -> Iterator[Problem]:
    shape = model.architecture
    default = f"remove it: vLLM then chooses {DEFAULT}."
    if reason := _why_unserved(backend, values, model, capability, layer):
        yield of_option(choice.option, backend.name, f"{reason}: {EXITS}", default)
        return
    if backend.name == "FLEX_ATTENTION" and shape.shared_kv_layers:
        reason = f"it cannot read the KV cache of another layer, as {shape.shared_kv_layers} layers of {model.id} do"
        yield of_option(choice.option, backend.name, f"{reason}: {EXITS}", default)
        return
    if environment.get("VLLM_BATCH_INVARIANT") == "1" and choice.option and not backend.batch_invariant:
        consequence = f"it has no mode for VLLM_BATCH_INVARIANT=1, which bezel:variables sets: {EXITS}"
        yield of_option(choice.option, backend.name, consequence, default)
        return
    if not backend.kv_cache_dtypes:
        return  # it serves no Gemma 4: another kind of layer refuses it
    serves = f"{backend.name}, which serves {model.id} on this GPU, does not take it"
    dtype = str(values.get("kv-cache-dtype", "auto"))
    if dtype not in (taken := backend.kv_cache_dtypes[capability][_inputs(values, model)]):
        yield of_option("kv-cache-dtype", dtype, f"{serves}: {EXITS}", f"choose one of {', '.join(taken)}.")
    block = integer(values, "block-size")
    if block and all(block % size for size in backend.block_sizes):
        least = min(backend.block_sizes)
        yield of_option("block-size", block, f"{serves}: {EXITS}", f"write a multiple of {least}.")
    number = {"half": "float16", "float": "float32"}.get(str(values.get("dtype")), str(values.get("dtype")))
    if number in ("float16", "bfloat16", "float32") and number not in backend.dtypes:
        yield of_option("dtype", number, f"{serves}: {EXITS}", f"choose one of {', '.join(backend.dtypes)}.")
    for option, runs in (
        ("decode-context-parallel-size", backend.dcp),
        ("prefill-context-parallel-size", backend.pcp),
    ):
        if (integer(values, option) or 1) > 1 and not runs:
            consequence = f"{backend.name} cannot divide one context between GPUs: {EXITS}"
            yield of_option(option, values[option], consequence, "remove it.")


def _why_unserved(
    backend: AttentionBackend, values: Mapping[str, Any], model: Model, capability: str, layer: str
) -> str:
    """Why a backend cannot serve a layer, whatever the other options are; "" where it can."""
    if backend.missing:
        return "vLLM has no class of this name"
    if backend.name.startswith(_FOREIGN):
        return "it is made for another kind of device"
    reasons = backend.refuses[capability][_inputs(values, model)][layer]
    if not reasons:
        return ""
    heads = {"window": model.architecture.sliding_head_dim, "full": model.architecture.full_head_dim}[layer]
    reason = next((_WORDS[text] for text in reasons if text in _WORDS), reasons[0].replace("{", "{{"))
    return reason.format(heads=heads, capability=capability)


def _inputs(values: Mapping[str, Any], model: Model) -> str:
    """The kind of input by which a backend is chosen: "images" where tokens of one image attend both ways."""
    return "images" if model.architecture.bidirectional_images and item_tokens(values, model) else "text"
