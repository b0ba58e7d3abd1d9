"""Start of the server: its log lines, the duration of each phase, and the end of a failing start.

No port is open during the start, so a probe's connection is refused, as with the real server. LOCALCLOUD_SPEED divides
every wait here and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.simulated_vllm.configuration import faults, tpu
from bezel.simulated_vllm.configuration.failures import StartError
from bezel.simulated_vllm.configuration.hardware import GIB
from bezel.simulated_vllm.configuration.hub import hub_models, is_hub_id
from bezel.simulated_vllm.configuration.logs import ENGINE, line, traceback
from bezel.simulated_vllm.configuration.options import VERSION
from bezel.simulated_vllm.configuration.settings import EngineSettings, make_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from bezel.simulated_vllm.configuration.checkpoint import Checkpoint
    from bezel.simulated_vllm.configuration.hardware import SimulatedMachine

# Measured on a real server: a refused configuration ends it after 7-8 s, a refused engine not before 20 s.
IMPORT_SECONDS = 7.5
ENGINE_SECONDS = 9.0
WARM_UP_SECONDS = 4.0
# Assumed, not measured: the bytes that an instance downloads from the hub in a second.
HUB_BYTES_PER_SECOND = 150e6
_FLASH_ATTENTION = ("9.", "10.", "11.")
_NO_FAULTS = faults.StartFaults()


def start(
    options: argparse.Namespace,
    machine: SimulatedMachine,
    environment: Mapping[str, str],
    sleep: Callable[[float], None],
    ordered: faults.StartFaults = _NO_FAULTS,
) -> EngineSettings:
    """Run the phases of a start up to the moment before the port opens.

    Args:
        options: the parsed command line.
        machine: the machine that it runs on.
        environment: the container's environment.
        sleep: waits the given seconds of the server (the caller divides by the speed).
        ordered: the faults of the start.

    Returns:
        The settings of the engine.

    Raises:
        StartError: the start failed; the lines that the real server logs about it are logged.
    """
    _banner(options, machine)
    sleep(IMPORT_SECONDS)
    try:
        with hub_models(options, machine, environment) as machine_with_models:
            settings = make_settings(options, machine_with_models, environment)
    except StartError as failure:
        _fail(failure, machine, sleep)
        raise
    _configured(settings)
    sleep(ENGINE_SECONDS)
    try:
        _loaded(settings, tpu.Graphs(settings, environment), sleep, ordered)
    except StartError as failure:
        _engine_failed(failure)
        raise
    return settings


def _banner(options: argparse.Namespace, machine: SimulatedMachine) -> None:
    mark = f"localcloud: simulated server, timings from a model of {machine.accelerators} x {machine.accelerator.name}"
    line(f"\nversion {VERSION}\nmodel   {options.model}\n{mark}\n", source="api_utils.py:347")
    given = {name: value for name, value in vars(options).items() if name in options.given and name != "api_key"}
    line(f"non-default args: {given}", source="api_utils.py:286")


def _configured(settings: EngineSettings) -> None:
    model = settings.model
    line(f"Resolved architecture: {model.architecture}", source="model.py:733")
    line(f"Using max model len {settings.max_model_len}", source="model.py:2152")
    if model.sliding_head_dim != model.full_head_dim:
        dims = {"sliding_attention": model.sliding_head_dim, "full_attention": model.full_head_dim}
        flash = settings.machine.accelerator.compute_capability.startswith(_FLASH_ATTENTION)
        backend = "Using FA4." if flash else "FA4 not available, forcing TRITON_ATTN backend."
        line(f"Gemma4 model has heterogeneous head dimensions {dims}. {backend}", source="config.py:286")
    for note in tpu.kv_notes(settings.kv_cache_dtype) if settings.machine.accelerator.xla else ():
        line(note, source="tpu_platform.py:190")
    if settings.kv_cache_dtype.startswith("fp8"):
        line(
            "Using fp8 data type to store kv cache. It reduces the GPU memory footprint and boosts the performance. "
            "Meanwhile, it may cause accuracy drop without a proper scaling factor.",
            source="cache.py:229",
        )
    drafting = settings.speculation
    if drafting and drafting.method == "ngram":
        text = "Async scheduling not supported with ngram-based speculative decoding and will be disabled."
        line(text, source="vllm.py:831", level="WARNING")
    if drafting and drafting.method == "mtp" and drafting.tokens > 1:
        line(
            "Enabling num_speculative_tokens > 1 will run multiple times of forward on same MTP layer,which may result "
            "in lower acceptance rate",
            source="speculative.py:537",
            level="WARNING",
        )


def load_seconds(model: Checkpoint, machine: SimulatedMachine) -> float:
    """Return the seconds that reading the weights from the mount takes."""
    return model.weight_bytes / machine.accelerator.load_bytes_per_second


def _loaded(
    settings: EngineSettings, graphs: tpu.Graphs, sleep: Callable[[float], None], ordered: faults.StartFaults
) -> None:
    memory, chip = settings.memory, settings.machine.accelerator
    line(f"Initializing a V1 LLM engine (v{VERSION}) with config: model='{settings.model_path}', "
         f"max_seq_len={settings.max_model_len}, tensor_parallel_size={settings.tensor_parallel}, "
         f"kv_cache_dtype={settings.kv_cache_dtype}, seed={settings.seed}, "
         f"served_model_name={settings.served_names[0]}, enable_prefix_caching={settings.prefix_caching}",
         source="core.py:133", process=ENGINE)  # fmt: skip
    if is_hub_id(settings.model_path):
        downloading = settings.model.weight_bytes / HUB_BYTES_PER_SECOND * ordered.slowness
        sleep(downloading)
        text = f"Time spent downloading weights for {settings.model_path}: {downloading:.6f} seconds"
        line(text, source="weight_utils.py:713", process=ENGINE)
    loading = load_seconds(settings.model, settings.machine) * ordered.slowness
    compiling = (graphs.seconds(chip.xla) if chip.xla else chip.compile_seconds) * ordered.slowness
    sleep(loading)
    line(f"Loading weights took {loading:.2f} seconds", source="default_loader.py:502", process=ENGINE)
    line(
        f"Model loading took {memory.weights / GIB:.2f} GiB memory and {loading + 1.2:.6f} seconds",
        source="model_runner.py:425",
        process=ENGINE,
    )
    if ordered.out_of_memory:
        raise faults.out_of_memory(settings)
    sleep(compiling)
    if ordered.disk_full:
        raise faults.disk_full()
    if chip.xla:
        graphs.keep()
        line(f"Compilation of {graphs.count} graphs finished in {compiling:.2f} [secs].",
             source="compilation_manager.py:120", process=ENGINE)  # fmt: skip
    else:
        line(f"torch.compile took {compiling:.2f} s in total", source="monitor.py:20", process=ENGINE)
    line(f"Available KV cache memory: {memory.available / GIB:.2f} GiB", source="gpu_worker.py:760", process=ENGINE)
    line(
        f"GPU KV cache size: {memory.tokens:,} tokens, Maximum concurrency for {settings.max_model_len:,} tokens per "
        f"request: {memory.concurrency:.2f}x",
        source="kv_cache_utils.py:2327",
        process=ENGINE,
    )
    sleep(WARM_UP_SECONDS)
    took = compiling + WARM_UP_SECONDS
    line(
        f"init engine (profile, create kv cache, warmup model) took {took:.2f} s (compilation: {compiling:.2f} s)",
        source="core.py:403",
        process=ENGINE,
    )


def _fail(failure: StartError, machine: SimulatedMachine, sleep: Callable[[float], None]) -> None:
    if failure.stage == "config":
        traceback(failure.kind, failure.message)
        return
    chip = machine.accelerator
    sleep(ENGINE_SECONDS + chip.memory_gib * GIB / chip.load_bytes_per_second / 4)
    if failure.stage != "host-memory":
        _engine_failed(failure)


def _engine_failed(failure: StartError) -> None:
    cause = f"EngineCore failed to start.\nTraceback (most recent call last):\n{failure.kind}: {failure.message}"
    line(cause, source="core.py:1510", process=ENGINE, level="ERROR")
    traceback(
        "RuntimeError",
        "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
    )
