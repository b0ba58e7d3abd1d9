"""Options whose configuration class the parser itself makes: what the class refuses is an error of the parser.

Source: vllm 0.32.0, engine/arg_utils.py (parse_dataclass) and config/: compilation.py, attention.py,
structured_outputs.py, profiler.py, pooler.py, ec_transfer.py and quantization.py. Leaves types and unknown keys to
`fields.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_catalog.vllm.attention_backends import attention_backends
from bezel_simulated_vllm.configuration.relations.quantisation import quantisation_error

if TYPE_CHECKING:
    import argparse

_MODES = ("NONE", "STOCK_TORCH_COMPILE", "DYNAMO_TRACE_ONCE", "VLLM_COMPILE")
_KINDS = (
    *("chunked_local_attention", "cross_attention", "encoder_only_attention", "full_attention", "mamba"),
    *("mla_attention", "sink_full_attention", "sliding_window", "sliding_window_mla", "unknown"),
)


def configuration_error(options: argparse.Namespace) -> str:
    """Return the parser's error about the first class that refuses its option; "" where none does."""
    for flags, name, refuse in (
        ("--compilation-config/-cc", "CompilationConfig", _compilation),
        ("--attention-config/-ac", "AttentionConfig", _attention),
        ("--structured-outputs-config", "StructuredOutputsConfig", _outputs),
        ("--profiler-config", "ProfilerConfig", _profiler),
        ("--pooler-config", "PoolerConfig", _pooler),
        ("--ec-transfer-config", "ECTransferConfig", _encoder_transfer),
        ("--quantization-config", "QuantizationConfigArgs", quantisation_error),
    ):
        value = getattr(options, flags.partition("/")[0].removeprefix("--").replace("-", "_"))
        if isinstance(value, dict) and (refused := refuse(value)):
            field, _, text = refused.rpartition("\n")
            where = f"{field}\n" if field else ""
            message = text if "[type=" in text else f"Value error, {text}"
            return f"argument {flags}: 1 validation error for {name}\n{where}  {message}"
    return ""


def _compilation(config: dict[str, Any]) -> str:
    mode, custom = config.get("mode"), config.get("custom_ops")
    if isinstance(mode, str) and mode.upper() not in _MODES:
        return f"mode\nInvalid compilation mode: {mode}. Valid modes are: {', '.join(_MODES)}"
    if isinstance(mode, int) and not 0 <= mode < len(_MODES):
        return f"mode\nInput should be 0, 1, 2 or 3 [type=enum, input_value={mode}, input_type=int]"
    operations = [str(word) for word in custom] if isinstance(custom, list) else []
    for word in operations:
        if word not in {"all", "none"} and (len(word) < 2 or word[0] not in "+-"):
            return (
                f"Invalid syntax '{word}' for custom op, must be 'all', 'none', '+op' or '-op' "
                "(where 'op' is the registered op name)"
            )
    if len([word for word in operations if word in {"all", "none"}]) > 1:
        return "custom_ops can contain only one base mode: 'all' or 'none'"
    both = sorted(
        {word[1:] for word in operations if word[0] == "+"} & {word[1:] for word in operations if word[0] == "-"}
    )
    if both:
        return (
            f"custom_ops cannot both enable and disable the same operation(s): {', '.join(both)}. "
            "Remove either the '+' or '-' directive"
        )
    return _numbers(config)


def _numbers(config: dict[str, Any]) -> str:
    """Return what is wrong with sizes and budgets; other types than numbers are refused by `fields.py`."""
    if any(size <= 0 for size in _whole(config.get("decoder_replay_cudagraph_capture_sizes"))):
        return "All decoder_replay_cudagraph_capture_sizes must be positive"
    if config.get("cudagraph_mm_encoder"):
        for key, none in (("vision_items", "0"), ("frames", "None")):
            if any(number < 0 for number in _whole([config.get(f"encoder_cudagraph_max_{key}_per_batch")])):
                return f"encoder_cudagraph_max_{key}_per_batch must be non-negative ({none} = auto-infer)"
    budgets = config.get("encoder_cudagraph_token_budgets")
    if any(budget <= 0 for budget in _whole(budgets)):
        return f"All encoder_cudagraph_token_budgets must be positive, got {budgets}"
    return ""


def _whole(values: object) -> list[int]:
    return [value for value in values if isinstance(value, int)] if isinstance(values, list) else []


def _attention(config: dict[str, Any]) -> str:
    kinds = config.get("backend_per_kind")
    kinds = kinds if isinstance(kinds, dict) else {}
    for kind in kinds:
        if kind not in _KINDS:
            return (
                f"backend_per_kind\nUnknown KV cache group kind '{kind}' in backend_per_kind. "
                f"Valid kinds are: {', '.join(_KINDS)}."
            )
    backends = attention_backends()
    for field, name in [("backend", config.get("backend")), *(("backend_per_kind", name) for name in kinds.values())]:
        if isinstance(name, str) and name.upper() not in (*backends, "AUTO"):
            return f"{field}\nUnknown attention backend: '{name.upper()}'. Valid options are: {', '.join(backends)}"
    return ""


def _outputs(config: dict[str, Any]) -> str:
    backend = config.get("backend", "auto")
    if config.get("disable_any_whitespace") and backend not in {"xgrammar", "guidance"}:
        return "disable_any_whitespace is only supported for xgrammar and guidance backends."
    if config.get("disable_additional_properties") and backend != "guidance":
        return "disable_additional_properties is only supported for the guidance backend."
    return ""


def _profiler(config: dict[str, Any]) -> str:
    profiler = config.get("profiler")
    if config.get("torch_profiler_dir") and profiler != "torch":
        return "torch_profiler_dir is only applicable when profiler is set to 'torch'"
    if config.get("proton_profiler_dir") and profiler != "proton":
        return "proton_profiler_dir only applicable when profiler is set to 'proton'"
    if profiler in {"torch", "proton"} and not config.get(f"{profiler}_profiler_dir"):
        return f"{profiler}_profiler_dir must be set when profiler is '{profiler}'"
    return ""


def _pooler(config: dict[str, Any]) -> str:
    if config.get("logit_sigma") == 0:
        return "logit_sigma cannot be 0 (division by zero)"
    for key in ("seq_pooling_type", "tok_pooling_type"):
        if config.get("pooling_type") and config.get(key):
            return f"Cannot set both `pooling_type` and `{key}`"
    return ""


def _encoder_transfer(config: dict[str, Any]) -> str:
    roles = ("ec_producer", "ec_consumer", "ec_both")
    if config.get("ec_connector") and not config.get("ec_role"):
        return f"Please specify ec_role when ec_connector is set, supported roles are {roles}"
    return ""
