"""Architectures that a vLLM knows, and the defaults of the configuration classes that it reads them by.

    PYTHON tools/vllm/recorders/architectures.py FOLDER

PYTHON is the interpreter of any vLLM, one for CPUs as well: nothing is loaded on a device. Two files are written into
FOLDER, the catalogue's `vllm/architectures`: RELEASE.json, the release as the installed vLLM states it, with each
architecture's kinds of tasks, its module and what its class says of itself, the classes of transformers that it serves
without one of its own, and its methods of quantisation; and configurations.json, by `model_type`
the defaults and other names of the fields that a memory plan reads. Imports nothing of this project.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any

KINDS = {
    "_TEXT_GENERATION_MODELS": "text",
    "_EMBEDDING_MODELS": "embedding",
    "_LATE_INTERACTION_MODELS": "late-interaction",
    "_REWARD_MODELS": "reward",
    "_TOKEN_CLASSIFICATION_MODELS": "token-classification",
    "_SEQUENCE_CLASSIFICATION_MODELS": "classification",
    "_MULTIMODAL_MODELS": "multimodal",
    "_SPECULATIVE_DECODING_MODELS": "draft",
    "_TRANSFORMERS_SUPPORTED_MODELS": "transformers",
    "_TRANSFORMERS_BACKEND_MODELS": "transformers",
}
TRAITS = ("is_hybrid", "is_attention_free", "is_text_generation_model", "is_pooling_model", "supports_multimodal")
_FIELDS = """
_sliding_window_pattern attention_chunk_size attention_head_dim attention_other_setting attn_config
attn_layer_offset attn_layer_period conv_L_cache conv_dim conv_kernel d_kv d_model decoder_attention_heads
decoder_ffn_dim decoder_layers decoder_num_attention_heads decoder_num_hidden_layers
decoder_num_key_value_heads decoder_sparse_step emb_dim embed_dim encoder_attention_heads encoder_ffn_dim
encoder_layers encoder_num_attention_heads expand expert_ffn_hidden_size expert_layer_offset
expert_layer_period ffn_config ffn_dim ffn_hidden_size full_attn_idxs global_attn_every_n_layers
global_head_dim head_dim hidden_dim hidden_size hidden_size_per_head hybrid_layer_pattern index_head_dim
index_topk interleave_moe_layer_step intermediate_size is_causal is_decoder kv_channels kv_lora_rank
layer_group_size layer_types layers_block_type linear_attn_config linear_conv_kernel_dim linear_key_head_dim
linear_num_key_heads linear_num_value_heads linear_value_head_dim mamba_d_conv mamba_d_head mamba_d_ssm
mamba_d_state mamba_expand mamba_head_dim mamba_n_groups mamba_n_heads mamba_ngroups mamba_num_heads
mamba_ssm_cache_dtype mamba_ssm_dtype max_position_embeddings max_seq_len max_sequence_length
max_target_positions max_window_layers mlp_layer_types moe_intermediate_size moe_k moe_layer_freq
moe_layer_start_index moe_layers moe_num_experts moe_top_k moe_topk multi_query multi_query_group_num n_embd
n_groups n_head n_head_kv n_heads n_inner n_layer n_layers n_mamba_heads n_positions n_routed_experts
new_decoder_architecture no_rope_layer_interval no_rope_layers num_attention_groups num_attention_heads
num_dense_layers num_encoder_attention_heads num_experts num_experts_per_tok num_experts_per_token
num_global_key_value_heads num_heads num_hidden_layers num_key_value_heads num_kv_heads num_kv_shared_layers
num_layers num_local_experts num_nextn_predict_layers original_max_position_embeddings pooling
qk_nope_head_dim qk_rope_head_dim seq_len seq_length sliding_window sliding_window_pattern
sliding_window_size ssm_state_size state_size swa_head_dim swa_num_key_value_heads swa_v_head_dim
tgt_vocab_size tie_word_embeddings top_k_experts use_bidirectional_attention use_sliding_window v_head_dim
vocab_size window_size
"""
FIELDS = frozenset(_FIELDS.split())


def architectures(registry: Any) -> dict[str, Any]:
    """Each architecture of the registry: its kinds of tasks, its module, its class and that class's traits."""
    rows: dict[str, Any] = {}
    for table, kind in KINDS.items():
        for name, (module, class_name) in getattr(registry, table, {}).items():
            row = rows.setdefault(name, {"kinds": [], "module": module.removeprefix("vllm.models.")})
            row["class"] = class_name
            if kind not in row["kinds"]:
                row["kinds"].append(kind)
    for name, row in rows.items():
        try:
            info = registry.ModelRegistry.models[name].inspect_model_cls()
        except Exception as error:  # noqa: BLE001 - a class that this machine cannot import has no traits
            row["not_imported"] = f"{type(error).__name__}: {error}".splitlines()[0].partition(" (/")[
                0
            ]  # no path of the machine
            continue
        row["traits"] = [trait for trait in TRAITS if getattr(info, trait)]
        row["attention"] = info.attn_type
    return dict(sorted(rows.items()))


def fallbacks() -> list[str]:
    """Classes of transformers that a vLLM without a class of its own serves: their attention can be exchanged.

    vLLM takes those that let their attention be set, and ends where a layer keeps a state or has attention of its own.
    """
    transformers: Any = importlib.import_module("transformers")
    tables: Any = importlib.import_module("transformers.models.auto.modeling_auto")
    endings = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
    names = {name for name in dir(transformers) if name.endswith(endings)}
    for table in ("MODEL_MAPPING_NAMES", "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES"):
        for value in getattr(tables, table).values():
            names.update([value] if isinstance(value, str) else value)
    served = []
    for name in sorted(names):
        try:
            kind = getattr(transformers, name)
            taken = kind.is_backend_compatible() or kind._can_set_attn_implementation()  # noqa: SLF001 - as vLLM asks
            source = inspect.getsource(sys.modules[kind.__module__])
            if taken and not kind._is_stateful and "ALL_ATTENTION_FUNCTIONS" in source:  # noqa: SLF001
                served.append(name)
        except Exception as error:  # noqa: BLE001 - a class of a package that is not installed
            print(name, type(error).__name__, str(error)[:100], file=sys.stderr)
    return served


def configurations() -> dict[str, Any]:
    """Defaults and attribute maps of the configuration classes, by model type."""
    automatic: Any = importlib.import_module("transformers.models.auto.configuration_auto")
    vllm_configs: Any = importlib.import_module("vllm.transformers_utils.config")
    rows: dict[str, Any] = {}
    registry = vllm_configs._CONFIG_REGISTRY  # noqa: SLF001 - named nowhere else
    for model_type in sorted({*automatic.CONFIG_MAPPING_NAMES, *registry}):
        source = registry if model_type in registry else automatic.CONFIG_MAPPING
        try:
            row = configuration(source[model_type])
        except Exception as error:  # noqa: BLE001 - a class of a package that is not installed, or without defaults
            print(model_type, type(error).__name__, str(error)[:100], file=sys.stderr)
            continue
        if row:
            rows[model_type] = row
    return rows


def configuration(kind: Any) -> dict[str, Any]:
    """Defaults, parts and attribute map of one configuration class."""
    parts = {key: part.model_type for key, part in vars(kind()).items() if hasattr(part, "model_type")}
    row = {
        "defaults": {key: value for key, value in declared_defaults(kind).items() if key in FIELDS and plain(value)},
        "parts": parts,
        "names": {key: name for key, name in kind.attribute_map.items() if key in FIELDS},
    }
    return {key: value for key, value in row.items() if value}


def declared_defaults(kind: Any) -> dict[str, Any]:
    """Defaults that a class declares. What it derives from other fields when it is made is none."""
    if dataclasses.is_dataclass(kind):
        return {field.name: field.default for field in dataclasses.fields(kind) if field.default is not None}
    parameters = inspect.signature(kind.__init__).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not None}


def quantisations() -> dict[str, int | None]:
    """Methods of quantisation: the least compute capability of a GPU, times ten; null where the class says nothing."""
    module: Any = importlib.import_module("vllm.model_executor.layers.quantization")
    rows: dict[str, int | None] = {}
    for method in sorted(module.QUANTIZATION_METHODS):
        try:
            rows[method] = module.get_quantization_config(method).get_min_capability()
        except Exception as error:  # noqa: BLE001 - a method of another platform
            print(method, type(error).__name__, str(error)[:100], file=sys.stderr)
            rows[method] = None
    return rows


def plain(value: Any) -> bool:
    """Whether a default is a number, a truth value, a text or a short list of such; layers of the default are not."""
    if isinstance(value, list | tuple):
        return len(value) <= 8 and all(isinstance(item, int | float | str) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


def main() -> None:
    """Write both files."""
    os.environ.update({"VLLM_LOGGING_LEVEL": "CRITICAL", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"})
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    vllm = importlib.import_module("vllm")
    registry: Any = importlib.import_module("vllm.model_executor.models.registry")
    registry._run_in_subprocess = lambda function: function()  # noqa: SLF001 - a process each takes half an hour
    release = vllm.__version__.partition("+")[0]
    transformers = importlib.import_module("transformers").__version__
    defaults: Any = importlib.import_module("vllm.config.model")
    content = {
        "vllm": release,
        "architectures": architectures(registry),
        "removed": registry._PREVIOUSLY_SUPPORTED_MODELS,  # noqa: SLF001
        "plugins": registry._OOT_SUPPORTED_MODELS,  # noqa: SLF001
        "suffixes": [suffix for suffix, _ in defaults.iter_architecture_defaults()],
        "transformers": fallbacks(),
        "quantisations": quantisations(),
    }
    (folder / f"{release}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    # Types of configurations stay as the first release has them that is recorded.
    file = folder / "configurations.json"
    earlier = json.loads(file.read_text(encoding="utf-8"))["configurations"] if file.exists() else {}
    rows = dict(sorted({**configurations(), **earlier}.items()))
    read = {"transformers": transformers, "configurations": rows}
    file.write_text(json.dumps(read, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
