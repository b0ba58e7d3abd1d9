"""Validators of the engine's configuration over several options and the model, in the words of vLLM 0.32.0.

Source: vllm 0.32.0, entrypoints/launchers/cli_args.py, engine/arg_utils.py and config/*.py; each was tried on the
real classes. Leaves devices, graphs and connectors to `devices.py`, drafting to `drafts.py`, multimodal input to
`processor.py`, adapters to `adapters.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.configuration.failures import refusal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint

_FAMILIES = (
    *("inter_token_latency", "iteration_tokens", "kv_cache_residency", "request_latency", "request_num_preemptions"),
    *("request_params_n", "request_tokens", "time_to_first_token"),
)


def check_command_line(options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Check what `vllm serve` and its parser look at before the configuration is made.

    Raises:
        StartError: with the text of the check.
    """
    front_end = environment.get("VLLM_USE_RUST_FRONTEND", "0") not in ("", "0")
    if options.grpc_port is not None and not front_end:
        raise refusal("grpc-port")
    if options.enable_log_outputs and not options.enable_log_requests:
        raise refusal("log-outputs")
    if options.enable_per_request_metrics and options.disable_log_stats:
        raise refusal("request-metrics")
    task = _map(options.pooler_config).get("task")
    if task in ("score", "encode"):
        raise refusal(f"removed-task-{task}")
    if options.served_model_name and "" in options.served_model_name:
        raise refusal("served-name")


def check_engine(options: argparse.Namespace, model: Checkpoint, environment: Mapping[str, str]) -> None:
    """Check the engine's configuration.

    Args:
        options: the parsed command line.
        model: the checkpoint.
        environment: of the container.

    Raises:
        StartError: with the text of the first validator that refuses.
    """
    _check_twice(options)
    _check_devices(options)
    _check_metrics(options)
    _check_events(_map(options.kv_events_config))
    _check_layers(options, model)
    if options.renderer_num_workers < 1:
        raise refusal("renderer-workers")
    if options.enable_hc_sp and options.tensor_parallel_size > 1:
        raise refusal("hc-sp")
    _check_runner(options, environment)


def _map(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _check_twice(options: argparse.Namespace) -> None:
    inner = _map(_map(options.kernel_config).get("ir_op_priority"))
    for name, order in _map(options.ir_op_priority).items():
        if order and inner.get(name):
            raise refusal("op-priority", name=name)


def _check_devices(options: argparse.Namespace) -> None:
    if not options.device_ids:
        return
    ids: list[Any] = [int(word) if word.strip().isdecimal() else word for word in str(options.device_ids).split(",")]
    if len(set(ids)) != len(ids):
        raise refusal("device-ids-twice", ids=ids)
    if len({isinstance(one, int) for one in ids}) > 1:
        raise refusal("device-ids-mixed")


def _check_events(config: Mapping[str, Any]) -> None:
    if not config.get("enable_kv_cache_events") or config.get("publisher", "zmq") != "zmq":
        return
    if (config.get("buffer_steps") or 0) < 0:
        raise refusal("events-buffer")
    if (config.get("hwm") or 0) < 0:
        raise refusal("events-limit")
    for key in ("endpoint", "replay_endpoint"):
        address = config.get(key)
        if isinstance(address, str) and "://" not in address:
            raise refusal("events-address", address=address)


def _check_metrics(options: argparse.Namespace) -> None:
    for family, bounds in _map(options.custom_histogram_buckets).items():
        if family not in _FAMILIES:
            raise refusal("bucket-family", family=family, known=sorted(_FAMILIES))
        if not bounds:
            raise refusal("buckets-empty", family=family)
        for bound in bounds:
            if isinstance(bound, bool) or not 0 < float(bound) < float("inf"):
                raise refusal("bucket-bound", family=family, bound=float(bound))
        if any(bounds[at] >= bounds[at + 1] for at in range(len(bounds) - 1)):
            raise refusal("buckets-falling", family=family, bounds=[float(bound) for bound in bounds])
    version = options.show_hidden_metrics_for_version
    if version is not None and not version.strip().lstrip("vV")[:1].isdigit():
        raise refusal("metrics-version", version=version)


def _check_layers(options: argparse.Namespace, model: Checkpoint) -> None:
    if options.mamba_ssu_algorithm and str(options.mamba_backend).lower() != "flashinfer":
        raise refusal("ssu-algorithm")
    if options.enable_mamba_cache_stochastic_rounding and options.mamba_ssm_cache_dtype != "float16":
        raise refusal("mamba-rounding")
    if options.engram_config is not None:
        raise refusal("engram")
    if options.use_replayssm:
        raise refusal("replayssm", architecture=model.architecture)
    block = options.mamba_block_size
    if block is not None and block != options.max_model_len and options.enable_prefix_caching is False:
        raise refusal("mamba-block")


def _check_runner(options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    first = environment.get("VLLM_USE_V2_MODEL_RUNNER") == "0" and options.watermark_config is None
    if options.return_sampling_mask:
        if first:
            raise refusal("mask-runner")
        if options.logprobs_mode != "processed_logprobs":
            raise refusal("mask-logprobs")
    if options.enable_trace_replay and first:
        raise refusal("trace-runner")
    if options.enable_batch_sharded_sampling:
        if first:
            raise refusal("sharded-runner")
        _check_sharded_sampling(options)


def _check_sharded_sampling(options: argparse.Namespace) -> None:
    size, sequences, reasons = options.tensor_parallel_size, options.max_num_seqs, []
    if size <= 1:
        reasons.append("tensor_parallel_size is 1, so there is nothing to shard")
    elif sequences is not None and sequences < size:
        reasons.append(f"max_num_seqs ({sequences}) is below tensor_parallel_size ({size})")
    if options.max_logprobs < 0:
        reasons.append("max_logprobs is -1, allowing vocab-size logprob requests")
    if options.return_sampling_mask:
        reasons.append("return_sampling_mask is set and the batch-sharded gather does not forward sampling masks")
    if reasons:
        raise refusal("sharded-sampling", reasons="; ".join(reasons))
