"""Relations of options with each other, the model and the device, as vLLM's configuration classes compare them.

Sources: vllm 0.32.0, config/parallel.py, config/model.py, config/scheduler.py, config/lora.py, config/offload.py,
config/compilation.py, config/vllm.py and engine/arg_utils.py; tpu-inference 0.32.0, platforms/tpu_platform.py. Leaves
the attention backend to `attention.py` and the longest multimodal item to `encoder.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.configuration.failures import refusal
from bezel_simulated_vllm.release import is_at_least

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint

_CUDAGRAPH_MODES = {"NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"}
_DEPRECATED = {"fbgemm_fp8", "fp_quant"}
_TPU_CONNECTORS = ("TPUConnector", "TPUConnectorHMA", "TPUOffloadConnector", "RaidenOffloadConnector")
_NOT_ASYNCHRONOUS = ("ngram", "suffix")
# Methods that the second model runner does not have (config/vllm.py: _get_v2_model_runner_unsupported_features).
_OF_FIRST_RUNNER = ("suffix", "medusa", "mlp_speculator", "custom_class")
# Kernels of experts that exchange tokens by themselves, and the exchanges that vLLM then leaves out (config/kernel.py).
_OF_DEEPSEEK = "flashinfer_moe_ep_mega_deep_gemm"
_EXCHANGING = (_OF_DEEPSEEK, "flashinfer_moe_ep_cutedsl")
_COLLECTIVES = ("allgather_reducescatter", "naive", "pplx")
# Methods that tpu-inference's runner has no drafter for (runner/tpu_runner.py: _init_speculative_decoding).
_NOT_ON_TPU = ("ngram_gpu", "suffix", "draft_model")


def check_relations(
    options: argparse.Namespace, model: Checkpoint, environment: Mapping[str, str], *, tpu: bool
) -> None:
    """Check the relations that need neither memory nor lengths.

    Args:
        options: the parsed command line.
        model: the served model.
        environment: the container's environment.
        tpu: whether the TPU plugin serves.

    Raises:
        StartError: the real server would not start.
    """
    if tpu:
        _check_tpu(options, environment)
    _check_model_options(options, tpu=tpu)
    if options.model_impl == "transformers" and model.multimodal and not tpu:
        _check_transformers_media(options, model)
    _check_parallel(options, model, tpu=tpu)
    _check_asynchronous(options, environment, tpu=tpu)
    _check_processes(options, model, environment)
    _check_compilation(options)
    _check_offloading(options)
    _check_transfer(options, environment, tpu=tpu)
    if not tpu:
        _check_runner(options, environment)
    if options.enable_return_routed_experts:
        _check_routed_experts(options, model, environment, tpu=tpu)


def check_lengths(options: argparse.Namespace, sequences: int, max_model_len: int) -> None:
    """Check numbers of the scheduler and of adapters against their bounds.

    Raises:
        StartError: one is above its bound.
    """
    active, threshold = options.max_num_active_seqs, options.long_prefill_token_threshold or 0
    if active is not None and active > sequences:
        raise refusal("active-sequences", active=active, sequences=sequences)
    if 0 < max_model_len < threshold:
        raise refusal("long-prefill", threshold=threshold, length=max_model_len)
    kept = options.max_cpu_loras
    if options.enable_lora and kept is not None and kept < options.max_loras:
        raise refusal("cpu-loras", kept=kept, adapters=options.max_loras)


def _check_tpu(options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    if options.enable_sleep_mode:
        raise refusal("no-sleep-mode")
    if options.enable_cumem_allocator:
        raise refusal("no-cumem")
    method = options.spec_method or (options.speculative_config or {}).get("method")
    if method in _NOT_ON_TPU:
        raise refusal("tpu-draft-method", method=method)
    if environment.get("NEW_MODEL_DESIGN", "").lower() in {"1", "true"}:
        return
    for size, what in (
        (options.decode_context_parallel_size, "Context Parallelism"),
        (options.prefill_context_parallel_size, "Prefill Context Parallelism"),
    ):
        if size > 1:
            raise refusal("tpu-context-parallel", what=what)


def _check_model_options(options: argparse.Namespace, *, tpu: bool) -> None:
    if options.model_impl == "terratorch":
        raise refusal("terratorch")
    if options.quantization in _DEPRECATED and not options.allow_deprecated_quantization:
        raise refusal("deprecated-quantization", name=options.quantization)
    if options.kda_prefill_backend == "flashkda" and tpu:
        raise refusal("kda-flash")
    if options.kda_prefill_backend == "fused":
        raise refusal("kda-fused")
    kernels = options.kernel_config if isinstance(options.kernel_config, dict) else {}
    if options.enable_flashinfer_autotune is not None and kernels.get("enable_flashinfer_autotune") is not None:
        raise refusal("two-autotune-options")


def _check_transformers_media(options: argparse.Namespace, model: Checkpoint) -> None:
    """Check that transformers' model serves text: it looks for the length of a clip in the tower's configuration."""
    limits = options.limit_mm_per_prompt or {}
    counts = [
        limit.get("count", 999) if isinstance(limit, dict) else limit
        for limit in (limits.get(kind, 999) for kind in ("image", "video", "audio"))
    ]
    if options.language_model_only or not any(counts):
        return
    unified = "Unified" if model.model_type.startswith("gemma4_unified") else ""
    tower = f"Gemma4{unified}AudioConfig" if model.audio_tokens else "NoneType"
    raise refusal("transformers-media", config=tower)


def _check_parallel(options: argparse.Namespace, model: Checkpoint, *, tpu: bool) -> None:
    tensor, prefill, data = (
        options.tensor_parallel_size,
        options.prefill_context_parallel_size,
        options.data_parallel_size,
    )
    if options.enable_eplb and tpu:
        raise refusal("eplb-device")
    if options.enable_eplb and options.enable_expert_parallel and tensor * prefill * data <= 1:
        raise refusal("eplb-alone", tensor=tensor, prefill=prefill, data=data)
    redundant = (options.eplb_config or {}).get("num_redundant_experts") or 0
    if redundant and not options.enable_eplb:
        raise refusal("redundant-experts", redundant=redundant)
    if options.decode_context_parallel_size > 1 and tensor <= model.sliding_kv_heads:
        raise refusal("context-parallel-heads", tensor=tensor, heads=model.sliding_kv_heads)
    if options.enable_hc_sp and tensor > 1:
        raise refusal("hyper-connections")
    if options.moe_backend == _OF_DEEPSEEK:
        raise refusal("deepseek-experts", name=_OF_DEEPSEEK, model=[model.architecture])
    if options.moe_backend in _EXCHANGING and options.all2all_backend not in _COLLECTIVES:
        raise refusal("two-exchanges", kernel=options.moe_backend, exchange=options.all2all_backend)
    if options.ray_workers_use_nsight and options.distributed_executor_backend != "ray":
        raise refusal("nsight")


def steps_overlap(options: argparse.Namespace, environment: Mapping[str, str], *, tpu: bool) -> bool:
    """Whether a step starts before the one before it is completed, as it does unless that is switched off.

    Drafts made from the last step's tokens exclude it: up to 0.32.0 all of them, later where the first model runner
    makes them.
    """
    method = _draft_method(options)
    alone = method in _NOT_ASYNCHRONOUS and _excludes_overlap(options, environment, method, tpu=tpu)
    return options.async_scheduling is not False and not alone


def _draft_method(options: argparse.Namespace) -> str | None:
    method = options.spec_method or (options.speculative_config or {}).get("method")
    return None if method is None else str(method)


def _excludes_overlap(
    options: argparse.Namespace, environment: Mapping[str, str], method: str | None, *, tpu: bool
) -> bool:
    """Whether the runner that serves a method does not schedule all of them asynchronously."""
    first_runner = tpu or environment.get("VLLM_USE_V2_MODEL_RUNNER") == "0" or method in _OF_FIRST_RUNNER
    return first_runner or not is_at_least(options.release, "0.33.0")


def _check_asynchronous(options: argparse.Namespace, environment: Mapping[str, str], *, tpu: bool) -> None:
    """Check asynchronous scheduling beside drafts, which since 0.33.0 only the first model runner cannot combine."""
    drafts = options.speculative_config or {}
    method = _draft_method(options)
    if not options.async_scheduling or not (method or drafts):
        return
    if not is_at_least(options.release, "0.33.0"):
        if method in _NOT_ASYNCHRONOUS:
            raise refusal("asynchronous-drafts")
        return
    if not _excludes_overlap(options, environment, method, tpu=tpu):
        return
    if method in _NOT_ASYNCHRONOUS:
        raise refusal("asynchronous-runner", what=f"{method}-based speculative decoding")
    if drafts.get("disable_padded_drafter_batch"):
        raise refusal("asynchronous-runner", what="disable_padded_drafter_batch=True")


def _check_processes(options: argparse.Namespace, model: Checkpoint, environment: Mapping[str, str]) -> None:
    """Check what the processes of the server exchange, and on how many machines they run."""
    world = options.tensor_parallel_size * options.pipeline_parallel_size
    world *= options.prefill_context_parallel_size * options.data_parallel_size
    local = options.data_parallel_size_local
    if local is not None and local > options.data_parallel_size:
        raise refusal("local-data-parallel", local=local, size=options.data_parallel_size)
    if options.nnodes > 1 and world % options.nnodes:
        raise refusal("nodes", nodes=options.nnodes, world=world)
    if options.mm_tensor_ipc != "torch_shm" or not model.multimodal:
        return
    if world > 1:
        raise refusal("shared-memory-devices")
    if environment.get("VLLM_WORKER_MULTIPROC_METHOD") != "spawn":
        raise refusal("shared-memory-spawn")


def _check_runner(options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Check drafts against the model runner: the second one, unless a variable or the method asks for the first."""
    drafts = options.speculative_config or {}
    method = options.spec_method or drafts.get("method")
    chosen, adaptive = environment.get("VLLM_USE_V2_MODEL_RUNNER"), drafts.get("enable_adaptive_verification")
    if chosen == "1" and method in _OF_FIRST_RUNNER:
        raise refusal("second-runner", method=method)
    if not adaptive:
        return
    if chosen == "0" or method in _OF_FIRST_RUNNER:
        raise refusal("adaptive-runner")
    if options.enable_lora:
        raise refusal("adaptive-adapters")
    config = options.compilation_config if isinstance(options.compilation_config, dict) else {}
    if options.enforce_eager or str(config.get("cudagraph_mode", "")).upper() in {"NONE", "PIECEWISE"}:
        raise refusal("adaptive-graphs")


def _check_compilation(options: argparse.Namespace) -> None:
    config: dict[str, Any] = options.compilation_config if isinstance(options.compilation_config, dict) else {}
    mode = config.get("cudagraph_mode")
    if isinstance(mode, str) and mode.upper() not in _CUDAGRAPH_MODES:
        raise refusal("cudagraph-mode", name=mode.upper())
    for name in ("cudagraph_capture_sizes", "max_cudagraph_capture_size"):
        if getattr(options, name) is not None and config.get(name) is not None:
            raise refusal("two-graph-options", name=name)
    for endpoint in config.get("compile_ranges_endpoints") or ():
        if endpoint <= 0:
            raise refusal("compile-range", endpoint=endpoint)
    if options.language_model_only and config.get("cudagraph_mm_encoder"):
        raise refusal("no-encoder-graphs")
    if options.enforce_eager or (isinstance(mode, str) and mode.upper() == "NONE"):
        return
    _check_sizes(options, config)


def _check_sizes(options: argparse.Namespace, config: dict[str, Any]) -> None:
    for size in config.get("compile_sizes") or ():
        if isinstance(size, str) and size != "cudagraph_capture_sizes":
            raise refusal("compile-size", size=size)
    sizes, largest = options.cudagraph_capture_sizes, options.max_cudagraph_capture_size
    sizes = config.get("cudagraph_capture_sizes") if sizes is None else sizes
    largest = config.get("max_cudagraph_capture_size") if largest is None else largest
    if largest is not None and largest < 1:
        raise refusal("graph-size-low")
    if sizes is not None and not sizes:
        raise refusal("no-graph-sizes")
    if sizes and largest is not None:
        step = options.max_num_batched_tokens
        valid = max((size for size in sizes if step is None or size <= step), default=0)
        if valid != largest:
            raise refusal("graph-sizes", largest=largest, valid=valid)


def check_captured_sizes(options: argparse.Namespace, batched: int) -> None:
    """Check that TRITON_ATTN, which vLLM takes on Gemma 4's GPUs, gets a size of the graphs of whole steps.

    Args:
        options: the parsed command line.
        batched: tokens of a step; sizes above it are left out.

    Raises:
        StartError: every size is left out, or none is a number of tokens.
    """
    config: dict[str, Any] = options.compilation_config if isinstance(options.compilation_config, dict) else {}
    sizes = options.cudagraph_capture_sizes or config.get("cudagraph_capture_sizes")
    mode = str(config.get("cudagraph_mode") or "FULL_AND_PIECEWISE").upper()
    attention = options.attention_config if isinstance(options.attention_config, dict) else {}
    backend = str(options.attention_backend or attention.get("backend") or "AUTO").upper()
    if not sizes or options.enforce_eager or mode in {"NONE", "PIECEWISE"} or backend not in {"AUTO", "TRITON_ATTN"}:
        return
    if min(sizes) > batched:
        raise refusal("no-captured-sizes")
    if max(sizes) < 0:
        raise refusal("graph-sizes-negative", size=max(sizes))


def _check_offloading(options: argparse.Namespace) -> None:
    group, number = options.offload_group_size, options.offload_num_in_group
    if (options.offload_backend == "prefetch" or group > 0) and number > group:
        raise refusal("offload-group", number=number, group=group)
    if group > 0 and options.offload_prefetch_step < 1:
        raise refusal("offload-step", step=options.offload_prefetch_step)


def _check_transfer(options: argparse.Namespace, environment: Mapping[str, str], *, tpu: bool) -> None:
    connector = (options.kv_transfer_config or {}).get("kv_connector")
    if not connector:
        return
    if tpu:
        if connector not in _TPU_CONNECTORS:
            raise refusal("tpu-connector", name=connector, known=_TPU_CONNECTORS)
        if not (options.kv_transfer_config or {}).get("kv_connector_module_path"):
            raise refusal("tpu-connector-module", name=connector)
        return
    if connector == "HiSparseConnector":
        raise refusal("sparse-index")
    moves = "expandable_segments:True" in environment.get("PYTORCH_CUDA_ALLOC_CONF", "")
    if moves and not (options.enable_cumem_allocator or options.enable_sleep_mode):
        raise refusal("connector-segments", name=connector)


def _check_routed_experts(
    options: argparse.Namespace, model: Checkpoint, environment: Mapping[str, str], *, tpu: bool
) -> None:
    if not tpu and environment.get("VLLM_USE_V2_MODEL_RUNNER") == "0":
        raise refusal("experts-runner")
    if not model.experts:
        raise refusal("experts-model")
    if options.enable_prefix_caching is False:
        raise refusal("experts-caching")
