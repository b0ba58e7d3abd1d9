"""Start of the server: its log lines, the duration of each phase, and the end of a failing start.

No port is open during the start, so a probe's connection is refused, as with the real server. LOCALCLOUD_SPEED divides
every wait here and nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bezel_simulated_vllm.configuration import faults, tpu
from bezel_simulated_vllm.configuration.adapters import LoadedAdapters, allows_updates, load_adapters
from bezel_simulated_vllm.configuration.failures import StartError, refusal
from bezel_simulated_vllm.configuration.hardware import GIB
from bezel_simulated_vllm.configuration.hub import adapter_reader, hub_models, is_hub_id
from bezel_simulated_vllm.configuration.logs import log, traceback
from bezel_simulated_vllm.configuration.settings import EngineSettings, make_settings
from bezel_simulated_vllm.release import is_since

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from bezel_simulated_vllm.configuration.hardware import SimulatedMachine

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
    chip = machine.accelerator
    log(
        "banner", version=options.release, model=options.model, accelerators=machine.accelerators, accelerator=chip.name
    )
    arguments = {name: value for name, value in vars(options).items() if name in options.given and name != "api_key"}
    log("arguments", given=arguments)
    sleep(IMPORT_SECONDS)
    try:
        with hub_models(options, machine, environment) as machine_with_models:
            settings = make_settings(options, machine_with_models, environment)
    except StartError as failure:
        _fail(failure, machine, sleep)
        raise
    _log_configuration(settings)
    sleep(ENGINE_SECONDS)
    try:
        _load(settings, tpu.Graphs(settings, environment), sleep, ordered, eager=bool(options.enforce_eager))
    except StartError as failure:
        _engine_failed(failure)
        raise
    read = adapter_reader(machine, environment)
    try:
        adapters = load_adapters(options, settings.served_names, read)
    except StartError as failure:
        traceback(failure.kind, failure.message)
        raise
    for adapter in adapters:
        log("adapter", name=adapter.name, path=adapter.path)
    updates = allows_updates(environment)
    changeable = LoadedAdapters(options, settings.served_names, read, adapters) if updates else None
    return replace(settings, adapters=adapters, changeable_adapters=changeable)


def _log_configuration(settings: EngineSettings) -> None:
    model, drafting = settings.model, settings.speculation
    log("architecture", architecture=model.architecture)
    log("max-model-len", length=settings.max_model_len)
    if model.sliding_head_dim != model.full_head_dim:
        dims = {"sliding_attention": model.sliding_head_dim, "full_attention": model.full_head_dim}
        flash = settings.machine.accelerator.compute_capability.startswith(_FLASH_ATTENTION)
        backend = "Using FA4." if flash else "FA4 not available, forcing TRITON_ATTN backend."
        log("head-dimensions", dimensions=dims, backend=backend)
    if settings.kv_cache_dtype.startswith("fp8"):
        if settings.machine.accelerator.xla:
            log("tpu-kv-cache")  # the plugin uses another type than the requested one, and saved no memory (measured)
        log("fp8-kv-cache")
    if drafting and drafting.method == "ngram":
        if not settings.async_scheduling:
            log("ngram-first-runner" if is_since("0.33.0") else "ngram")
    elif drafting and drafting.tokens > 1:
        log(drafting.method)


def _load(
    settings: EngineSettings,
    graphs: tpu.Graphs,
    sleep: Callable[[float], None],
    ordered: faults.StartFaults,
    *,
    eager: bool,
) -> None:
    memory, chip = settings.memory, settings.machine.accelerator
    log("engine", version=settings.release, s=settings)
    if is_hub_id(settings.model_path):
        downloading = settings.model.weight_bytes / HUB_BYTES_PER_SECOND * ordered.slowness
        sleep(downloading)
        log("download", model=settings.model_path, seconds=downloading)
    loading = settings.model.weight_bytes / chip.load_bytes_per_second * ordered.slowness
    compiled = graphs.seconds(chip.xla) if chip.xla else 0.0 if eager else chip.compile_seconds
    compiling = compiled * ordered.slowness
    sleep(loading)
    log("weights", seconds=loading)
    log("model", memory=memory.weights / GIB, seconds=loading + 1.2)
    if ordered.out_of_memory:
        total = chip.memory_gib
        raise refusal("out-of-memory", total=total, used=total - 0.21, allocated=total - 0.6)
    sleep(compiling)
    if ordered.disk_full:
        raise refusal("disk-full")
    if chip.xla:
        graphs.keep()
        log("graphs", count=graphs.count, seconds=compiling)
    elif not eager:
        log("compile", seconds=compiling)
    if memory.layout.block_bytes:  # vLLM says nothing of the cache of an encoder
        log("cache-memory", memory=memory.available / GIB)
        log("cache-size", tokens=memory.tokens, length=settings.max_model_len, concurrency=memory.concurrency)
    sleep(WARM_UP_SECONDS)
    name = "warm-up" if compiling else "warm-up-eager"
    log(name, seconds=compiling + WARM_UP_SECONDS, compiling=compiling)


def _fail(failure: StartError, machine: SimulatedMachine, sleep: Callable[[float], None]) -> None:
    if failure.stage == "config":
        traceback(failure.kind, failure.message)
        return
    chip = machine.accelerator
    sleep(ENGINE_SECONDS + chip.memory_gib * GIB / chip.load_bytes_per_second / 4)
    if failure.stage == "application":
        traceback(failure.kind, failure.message)
    elif failure.stage == "engine":
        _engine_failed(failure)


def _engine_failed(failure: StartError) -> None:
    log("engine-failed", kind=failure.kind, message=failure.message)
    traceback(failure.kind, failure.message, "EngineCore")
    traceback(
        "RuntimeError",
        "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
    )
