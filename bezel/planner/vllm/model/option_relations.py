"""Relations between options of vLLM's engine, and of options with the model: each ends the start.

Owns the front end's options and the validators of vLLM 0.32.0's config/*.py that need no device, each tried on the real
classes. Leaves devices, graphs and connectors to bezel.planner.vllm.device.device_checks, drafting to draft_relations,
adapters to lora_checks, multimodal input to processor_checks, parsers to parser_checks.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option
from bezel.planner.vllm.model.multimodal_checks import takes_items_whole
from bezel_catalog.option_values import as_float, as_int
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem
    from bezel_catalog import Model

# Options of models that Gemma 4 is not: their layers, or their architecture.
_OF_OTHER_MODELS = {
    "use-replayssm": "it replays states of Mamba layers, which Gemma 4 has not",
    "engram-config": "Gemma 4 has no n-gram embeddings",
}
_REMOVED_TASKS = {"score": "classify", "encode": "token_embed"}
_BUCKETS = (
    *("inter_token_latency", "iteration_tokens", "kv_cache_residency", "request_latency", "request_num_preemptions"),
    *("request_params_n", "request_tokens", "time_to_first_token"),
)
_NEED_RUNNER_V2 = {
    "return-sampling-mask": "sampling masks",
    "enable-trace-replay": "trace replay",
    "enable-batch-sharded-sampling": "sampling in shards",
}
_VERSION = re.compile(r"v?\d+(\.\d+)*((a|b|rc|\.post|\.dev)\d+)*", re.IGNORECASE)


def check_relations(
    values: Mapping[str, Any], model: Model, environment: Mapping[str, str], *, tpu: bool
) -> Iterator[Problem]:
    """Refuse options that vLLM refuses beside others of them, or for Gemma 4.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        environment: of the container.
        tpu: whether tpu-inference serves the model.
    """
    yield from _front_end(values, environment)
    yield from _twice(values)
    yield from _other_models(values, model, tpu=tpu)
    yield from _configurations(values)
    yield from _metrics(values)
    yield from _runner(values, environment, tpu=tpu)
    if values.get("enable-hc-sp") is True and (integer(values, "tensor-parallel-size") or 1) > 1:
        yield _refusal("enable-hc-sp", True, f"{model.id} does not support it", "remove it.")


def _refusal(option: str, value: object, cause: str, repair: str) -> Problem:
    return of_option(option, value, f"{cause}; {EXITS}", repair)


def _map(values: Mapping[str, Any], option: str) -> Mapping[str, Any]:
    value = values.get(option)
    return value if isinstance(value, dict) else {}


def _front_end(values: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Problem]:
    name = "enable-per-request-metrics"
    if values.get(name) is True and values.get("disable-log-stats") is True:
        yield _refusal(name, True, "it reads the engine's statistics, which disable-log-stats turns off", "remove one.")
    port = values.get("grpc-port")
    if port is not None and environment.get("VLLM_USE_RUST_FRONTEND", "0") in ("", "0"):
        cause = "only the front end of VLLM_USE_RUST_FRONTEND=1 listens at it"
        yield _refusal("grpc-port", port, cause, "remove it.")
    servers = integer(values, "api-server-count")
    if servers is not None and servers < 1:
        consequence = "no server listens at the port: it would never become ready."
        yield of_option("api-server-count", servers, consequence, "remove it, or write 1 or more.")
    workers = integer(values, "renderer-num-workers")
    if workers is not None and workers < 1:
        cause = "no thread would read prompts"
        yield _refusal("renderer-num-workers", workers, cause, "remove it, or write 1 or more.")
    served = values.get("served-model-name")
    if served == "" or (isinstance(served, list) and "" in served):
        yield _refusal("served-model-name", "", "the model has no name then", "write one, or remove it.")
    ids = str(values.get("device-ids") or "").split(",")
    whole = [number.strip().isdecimal() for number in ids]
    if values.get("device-ids") is not None and len(set(ids)) < len(ids):
        yield _refusal("device-ids", values["device-ids"], "a device is named twice", "name each once.")
    elif any(whole) and not all(whole):
        yield _refusal("device-ids", values["device-ids"], "numbers and UUIDs are mixed", "write one of both kinds.")


def _twice(values: Mapping[str, Any]) -> Iterator[Problem]:
    inner = _map(_map(values, "kernel-config"), "ir_op_priority")
    if both := [name for name, priority in _map(values, "ir-op-priority").items() if priority and inner.get(name)]:
        cause = f"kernel-config.ir_op_priority sets {', '.join(both)} too"
        yield _refusal("ir-op-priority", values["ir-op-priority"], cause, "keep one of them.")


def _other_models(values: Mapping[str, Any], model: Model, *, tpu: bool) -> Iterator[Problem]:
    if not model.is_gemma4:
        return
    for option, cause in _OF_OTHER_MODELS.items():
        if values.get(option) not in (None, False):
            yield _refusal(option, values[option], cause, "remove it.")
    rounding = "enable-mamba-cache-stochastic-rounding"
    if values.get(rounding) is True and values.get("mamba-ssm-cache-dtype") != "float16":
        yield _refusal(
            rounding, True, "it needs mamba-ssm-cache-dtype: float16", "remove it: Gemma 4 has no such cache."
        )
    mode = "mamba-cache-mode"
    if values.get(mode) == "align" and takes_items_whole(values, model, tpu=tpu):
        cause = "images are read in one piece (disable-chunked-mm-input)"
        yield _refusal(mode, "align", cause, "remove it: Gemma 4 has no Mamba layers.")
    size = integer(values, "mamba-block-size")
    has_own_size = size is not None and size != integer(values, "max-model-len")
    if has_own_size and values.get("enable-prefix-caching") is False:
        yield _refusal("mamba-block-size", size, "it needs enable-prefix-caching", "remove it.")


def _configurations(values: Mapping[str, Any]) -> Iterator[Problem]:
    profiler = _map(values, "profiler-config")
    for kind in ("torch", "proton"):
        key = f"{kind}_profiler_dir"
        if profiler.get("profiler") == kind and not profiler.get(key):
            yield _refusal("profiler-config.profiler", kind, f"it needs {key}", f"add {key} to it.")
        elif profiler.get(key) and profiler.get("profiler") != kind:
            yield _refusal(f"profiler-config.{key}", profiler[key], f"it needs profiler: {kind}", "remove it.")
    pooling = _map(values, "pooler-config")
    task = pooling.get("task")
    if task in _REMOVED_TASKS:
        yield _refusal("pooler-config.task", task, "vLLM removed this task", f"write {_REMOVED_TASKS[str(task)]}.")
    twin = next((key for key in ("seq_pooling_type", "tok_pooling_type") if pooling.get(key)), None)
    if pooling.get("pooling_type") and twin:
        yield _refusal("pooler-config.pooling_type", pooling["pooling_type"], f"{twin} is set too", "keep one of them.")
    if as_float(pooling.get("logit_sigma")) == 0:
        yield _refusal("pooler-config.logit_sigma", 0, "scores are divided by it", "write another number.")
    yield from _events(_map(values, "kv-events-config"))
    transfer = _map(values, "ec-transfer-config")
    if transfer.get("ec_connector") and not transfer.get("ec_role"):
        connector = transfer["ec_connector"]
        yield _refusal("ec-transfer-config.ec_connector", connector, "it needs ec_role", "add ec_role to it.")


def _events(config: Mapping[str, Any]) -> Iterator[Problem]:
    if config.get("enable_kv_cache_events") is not True or config.get("publisher", "zmq") != "zmq":
        return
    for key in ("buffer_steps", "hwm"):
        number = as_int(config.get(key))
        if number is not None and number < 0:
            yield _refusal(f"kv-events-config.{key}", number, "it is below 0", "write 0 or more, or remove it.")
    for key in ("endpoint", "replay_endpoint"):
        address = config.get(key)
        if isinstance(address, str) and "://" not in address:
            cause = "ZeroMQ cannot read this address"
            yield _refusal(f"kv-events-config.{key}", address, cause, "write e.g. tcp://*:5557.")


def _metrics(values: Mapping[str, Any]) -> Iterator[Problem]:
    name = "custom-histogram-buckets"
    for family, bounds in _map(values, name).items():
        numbers = [as_float(bound) for bound in bounds] if isinstance(bounds, list) else []
        if family not in _BUCKETS:
            cause = "vLLM has no such histograms"
            yield _refusal(f"{name}.{family}", bounds, cause, f"choose one of {', '.join(_BUCKETS)}.")
        elif isinstance(bounds, list) and not _rises(numbers):
            cause = "bounds are numbers above 0, each above the one before"
            yield _refusal(f"{name}.{family}", bounds, cause, "write e.g. [0.1, 0.5, 1].")
    version = values.get("show-hidden-metrics-for-version")
    if isinstance(version, str) and not _VERSION.fullmatch(version.strip()):
        cause = "it does not have the form of a version"
        yield _refusal("show-hidden-metrics-for-version", version, cause, "write e.g. 0.31.")


def _rises(numbers: list[float | None]) -> bool:
    present = [number for number in numbers if number is not None]
    rising = all(a < b for a, b in itertools.pairwise(present))
    return 0 < len(present) == len(numbers) and present[0] > 0 and rising


def _runner(values: Mapping[str, Any], environment: Mapping[str, str], *, tpu: bool) -> Iterator[Problem]:
    old = environment.get("VLLM_USE_V2_MODEL_RUNNER") == "0" and not tpu
    for option, what in _NEED_RUNNER_V2.items():
        if old and values.get(option) is True and values.get("watermark-config") is None:
            cause = f"{what} need the second model runner, which VLLM_USE_V2_MODEL_RUNNER=0 turns off"
            yield _refusal(option, True, cause, "remove one of them.")
    if values.get("return-sampling-mask") is True and values.get("logprobs-mode") != "processed_logprobs":
        yield _refusal("return-sampling-mask", True, "it needs logprobs-mode: processed_logprobs", "add it.")
    if values.get("enable-batch-sharded-sampling") is True:
        size, seqs = integer(values, "tensor-parallel-size") or 1, integer(values, "max-num-seqs")
        causes = ["tensor-parallel-size is 1, so there is nothing to divide"] if size == 1 else []
        causes += [f"max-num-seqs={seqs} is below tensor-parallel-size={size}"] if seqs and seqs < size else []
        causes += ["max-logprobs is -1"] if integer(values, "max-logprobs") == -1 else []
        causes += ["return-sampling-mask is set"] if values.get("return-sampling-mask") is True else []
        if causes:
            yield _refusal("enable-batch-sharded-sampling", True, "; ".join(causes), "remove it.")
