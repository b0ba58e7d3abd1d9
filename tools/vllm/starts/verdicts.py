"""Verdicts of a real vLLM's own classes on starts, as far as they go without a GPU, weights or an engine.

    PYTHON -m tools.vllm.starts.verdicts < cases.json > verdicts.json

Runs with the Python of that vLLM and imports nothing of ours. Standard input: a list of
`{"words": arguments of vllm serve, the model's folder first, "variables": of the container, "device": {"capability":
[8, 9], "name": ..., "memory_gib": ..., "count": 1} or {"tpu": chips} or {}, this machine's CPU}`. Output: for each
`{"verdict": "accepted" | "refused" | "not judged", "stage": where it ended, "said": class and first line}`.

Every case runs in a process of its own, forked where vLLM is imported for its device. Its stages are those of a start:
parser, configuration, front end, engine (layers on torch's meta device, cache, scheduler), routes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import importlib
import io
import json
import logging
import os
import re
import signal
import sys
from typing import Any

from tools.vllm.starts.worker import module

_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
_STAGES = ("parser", "configuration", "front_end", "engine", "routes")
_SECONDS = 120
_PR_SET_PDEATHSIG = 1
_MODELS = {
    "Gemma4ForConditionalGeneration": "gemma4_mm",
    "Gemma4UnifiedForConditionalGeneration": "gemma4_unified",
    "Gemma4ForCausalLM": "gemma4",
    "Gemma4MTP": "gemma4_mtp",
}
_ENDED = {
    "verdict": "not judged",
    "stage": "",
    "said": f"it ended without a verdict, or not within {_SECONDS} s",
}
_MISSING = (ModuleNotFoundError, ImportError)
_OF_NO_DEVICE = re.compile(
    "Torch not compiled with CUDA|Found no NVIDIA driver|cudaGetDeviceCount|Cannot re-initialize CUDA"
)


def _first_module(*names: str) -> Any:
    """Import the module under the first of its names that this release has: 0.33.0 moved some of 0.32.0."""
    *earlier, last = names
    for name in earlier:
        with contextlib.suppress(ModuleNotFoundError):
            return module(name)
    return module(last)


class _Start:
    """One start, stage by stage."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.words = case["words"]

    def parser(self) -> None:
        """Parse and compare the arguments with each other, as `vllm serve` does first."""
        arguments = _first_module("entrypoints.common.cli_args", "entrypoints.launchers.cli_args")
        parser = module("utils.argparse_utils").FlexibleArgumentParser(prog="vllm serve")
        self.args = arguments.make_arg_parser(parser).parse_args(self.words)
        self.args.model = self.args.model_tag
        arguments.validate_parsed_serve_args(self.args)
        # Levels are looked up when the log is set up, before anything else.
        logging.getLogger("tried").setLevel(os.environ.get("VLLM_LOGGING_LEVEL", "INFO").upper())
        for read in module("envs").environment_variables.values():
            read()

    def configuration(self) -> None:
        """Read plugins of parsers, and make the engine's configuration."""
        for kind, place in (("tool", "tool_parsers"), ("reasoning", "reasoning")):
            plugin, plugin_module = getattr(self.args, f"{kind}_parser_plugin"), module(place)
            if plugin and len(plugin) > 3:
                manager = getattr(plugin_module, f"{kind.title()}ParserManager")
                getattr(manager, f"import_{kind}_parser")(plugin)
        module("entrypoints.launchers.launcher").validate_api_server_args(self.args)
        options = module("engine.arg_utils").AsyncEngineArgs.from_cli_args(self.args)
        self.config = options.create_engine_config()
        module("v1.executor.abstract").Executor.get_class(self.config)

    def front_end(self) -> None:
        """Make what turns requests into tokens: tokenizer, processor, encoder budget."""
        self.renderer = module("renderers.registry").renderer_from_config(self.config)
        self.processor = module("v1.engine.input_processor").InputProcessor(self.config, self.renderer)
        if not self.args.disable_log_stats:
            loggers = module("v1.metrics.loggers")
            loggers.StatLoggerManager(vllm_config=self.config, engine_idxs=[0], custom_stat_loggers=[])

    def engine(self) -> None:
        """Make the engine core: layers without weights, layout of the cache, scheduler, connector, grammars."""
        core, worker = module("v1.engine.core"), importlib.import_module("tools.vllm.starts.worker")
        with module("config").set_current_vllm_config(self.config):
            core.EngineCore(self.config, worker.Executor, log_stats=True)

    def routes(self) -> None:
        """Make the server: middleware, chat template, parsers, adapters."""
        tasks = ("generate",)
        app = module("entrypoints.launchers.app").build_app(self.args, tasks, self.config.model_config)
        state = module("entrypoints.launchers.api_server.app_state")
        asyncio.run(state.init_app_state(_Client(self), app.state, self.args, tasks))


class _Client:
    """The engine as its server sees it before the first request."""

    def __init__(self, start: _Start) -> None:
        self.vllm_config, self.model_config = start.config, start.config.model_config
        self.renderer, self.input_processor = start.renderer, start.processor
        self.errored, self.is_running = False, True

    async def add_lora(self, request: Any) -> bool:
        """Compare an adapter with the configuration, as the worker does before it loads its weights."""
        path = module("lora.utils").get_adapter_absolute_path(request.lora_path)
        config = self.vllm_config
        limit = config.scheduler_config.max_num_batched_tokens
        try:
            helper = module("lora.peft_helper").PEFTHelper.from_local_dir(path, limit)
        except FileNotFoundError as error:
            missing = module("exceptions").LoRAAdapterNotFoundError
            raise missing(request.lora_name, request.lora_path) from error
        helper.validate_legal(config.lora_config)
        return True


def judge(case: dict[str, Any]) -> dict[str, str]:
    """Return the verdict on one case, in this process."""
    os.environ.update(case["variables"])
    stderr, start, stage = io.StringIO(), _Start(case), "parser"
    try:
        with contextlib.redirect_stderr(stderr):
            for stage in _STAGES[:3] if "tpu" in case["device"] else _STAGES:
                getattr(start, stage)()
    except SystemExit:
        return _row("refused", stage, " ".join(stderr.getvalue().rpartition("error:")[2].split()))
    except Exception as error:  # noqa: BLE001 - whatever it is ends the server
        message = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if os.environ.get("START_VERDICTS_TRACE"):
            importlib.import_module("traceback").print_exc(file=sys.__stderr__)
        return _row("not judged" if _is_of_the_stand_in(error) else "refused", stage, message)
    return _row("accepted", stage, "")


def _is_of_the_stand_in(error: BaseException | None) -> bool:
    """Whether it is for want of a kernel or a package that the CUDA image has."""
    while error is not None:
        if isinstance(error, _MISSING) or type(error).__name__ == "NoKernelError":
            return True
        if _OF_NO_DEVICE.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _row(verdict: str, stage: str, message: str) -> dict[str, str]:
    # An object's address in memory differs from run to run.
    return {"verdict": verdict, "stage": stage.replace("_", " "), "said": re.sub(r"0x[0-9a-f]+", "0x", message)[:400]}


def _in_child(work: Any) -> Any:
    """Run it in a forked process; its JSON, or None where it ended without."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # the process that asked may be ended first
        os.close(reader)
        with os.fdopen(writer, "w") as out:
            json.dump(work(), out)
            out.flush()
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as text:
        written = text.read()
    os.waitpid(child, 0)
    return json.loads(written) if written else None


def _judge_in_time(case: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    signal.alarm(_SECONDS)  # ends the process, and so the wait for its verdict
    return judge(case), [name for name in sys.modules if name.startswith(("vllm.", "transformers."))]


def _judge_device(device: dict[str, Any], cases: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Import vLLM for one device, then judge each case in a process of its own."""
    if "capability" in device:
        stand_ins: Any = importlib.import_module("tools.vllm.starts.stand_ins")
        stand_ins.install(
            tuple(device["capability"]), device["name"], int(device["memory_gib"] * (1 << 30)), device["count"]
        )
    elif "tpu" in device:
        try:
            importlib.import_module("tools.vllm.starts.tpu").install(device["tpu"])
        except ModuleNotFoundError as error:
            return [_row("not judged", "", f"{error}: it is not on PYTHONPATH")] * len(cases)
    registry = module("model_executor.models.registry").ModelRegistry
    for name, file in _MODELS.items():
        with contextlib.suppress(ImportError, AttributeError):
            # Else each is looked at in a new process, which imports vLLM again.
            registry.register_model(name, getattr(module(f"model_executor.models.{file}"), name))
    verdicts = []
    for case in cases:
        verdict, loaded = _in_child(lambda case=case: _judge_in_time(case)) or (_ENDED, [])
        verdicts.append(verdict)
        print(f"{len(verdicts)} of {len(cases)}: {verdict['verdict']} {' '.join(case['words'])[:200]}", file=sys.stderr)
        for name in [] if verdicts[1:] else loaded:
            with contextlib.suppress(Exception):  # the next ones find loaded what the first one loaded
                importlib.import_module(name)
    return verdicts


def main() -> None:
    """Judge the cases on standard input."""
    os.environ.update(_QUIET)
    stdout = os.dup(1)
    os.dup2(2, 1)  # vLLM logs to stdout
    cases = json.load(sys.stdin)
    importlib.import_module("torch")
    importlib.import_module("transformers")
    verdicts: list[Any] = [None] * len(cases)
    devices = {json.dumps(case["device"], sort_keys=True): case["device"] for case in cases}
    for key, device in devices.items():
        numbers = [number for number, case in enumerate(cases) if json.dumps(case["device"], sort_keys=True) == key]
        device_verdicts = _in_child(
            lambda device=device, numbers=numbers: _judge_device(device, [cases[n] for n in numbers])
        )
        for number, verdict in zip(numbers, device_verdicts, strict=True):
            verdicts[number] = verdict
    with os.fdopen(stdout, "w") as out:
        json.dump(verdicts, out)


if __name__ == "__main__":
    main()
