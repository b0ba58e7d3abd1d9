"""LoRA adapters of `--lora-modules` and `--default-mm-loras`, loaded at the end of a start as vLLM 0.32.0 loads them.

Owns the words of the option, the configuration of an adapter, and the errors of a failing load
(entrypoints/openai/models/serving.py, lora/peft_helper.py). Each text was observed on a real engine. The tensors are
not read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.configuration.failures import StartError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin", "adapter_model.pt")
CONFIG = "adapter_config.json"
_PATH = re.compile(r"/(?:home|usr|opt|var|tmp|root|lib|mnt|srv)(?:/[\w.\-]+)+")
_INITS = ("gaussian", "eva", "orthogonal", "mica", "lora_ga")
_UNSUPPORTED = {
    "use_dora": "vLLM does not yet support DoRA.",
    "lora_bias": "vLLM does not support LoRA bias (lora_bias).",
    "alora_invocation_tokens": "vLLM does not support Activated LoRA (aLoRA).",
    "layer_replication": "vLLM does not support layer_replication.",
    "use_bdlora": "vLLM does not support block-diagonal LoRA (BD-LoRA).",
    "use_qalora": "vLLM does not support QALoRA.",
}


@dataclass(frozen=True)
class LoRAModulePath:
    """One adapter of the command line; called as vLLM's own class, whose name is in the parser's message."""

    name: str
    path: str
    base_model_name: str | None = None
    is_3d_lora_weight: bool = False


def parse_modules(texts: Sequence[str] | None, fail: Callable[[str], object]) -> list[LoRAModulePath] | None:
    """Return the adapters of the words of `--lora-modules`; `fail` ends the process with a message.

    Args:
        texts: of the option; None where it is not given.
        fail: the parser's `error`.
    """
    if texts is None:
        return None
    modules = []
    for word in texts:
        if not word:
            continue
        if "=" in word and "," not in word:
            name, _, path = word.partition("=")
            modules.append(LoRAModulePath(name, path))
            continue
        try:
            modules.append(LoRAModulePath(**json.loads(word)))
        except json.JSONDecodeError:
            fail(f"Invalid JSON format for --lora-modules: {word}")
        except TypeError as error:
            fail(f"Invalid fields for --lora-modules: {word} - {error}")
    return modules


@dataclass(frozen=True)
class AdapterFiles:
    """What is read of an adapter: the text of its configuration, None without one, and whether it has weights."""

    config: str | None
    has_weights: bool


def local_files(directory: Path) -> AdapterFiles:
    """Return what a directory of this machine has of an adapter."""
    try:
        config: str | None = (directory / CONFIG).read_text(encoding="utf-8")
    except OSError:
        config = None
    return AdapterFiles(config, any((directory / name).is_file() for name in WEIGHTS))


def load_adapters(
    options: argparse.Namespace, served: Sequence[str], read: Callable[[str], AdapterFiles]
) -> tuple[LoRAModulePath, ...]:
    """Load the adapters that the command line names, in its order.

    Args:
        options: the parsed command line.
        served: names of the model.
        read: returns what a path of the container, or a name on the hub, has of an adapter.

    Raises:
        StartError: one of them cannot be loaded: the server ends after its engine has started.
    """
    media = (options.default_mm_loras or {}) if options.enable_lora else {}
    modules = [*(options.lora_modules or ()), *(LoRAModulePath(name, path) for name, path in media.items())]
    loaded: dict[str, LoRAModulePath] = {}
    for module in modules:
        if problem := _conflict(module, served, loaded) or _problem(module, options, read(module.path)):
            raise StartError("ValueError", _plain(problem))
        loaded[module.name] = module
    return tuple(loaded.values())


class LoadedAdapters:
    """The adapters of a server whose callers may change them: `VLLM_ALLOW_RUNTIME_LORA_UPDATING`.

    Each refusal is a status, a type and a text, as the server answers them.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        served: Sequence[str],
        read: Callable[[str], AdapterFiles],
        modules: Iterable[LoRAModulePath],
    ) -> None:
        self._options, self._served, self._read = options, served, read
        self._modules = {module.name: module for module in modules}

    @property
    def modules(self) -> tuple[LoRAModulePath, ...]:
        """Those that are loaded, in the order in which they were."""
        return tuple(self._modules.values())

    def load(self, module: LoRAModulePath, *, in_place: bool) -> tuple[int, str, str] | None:
        """Load an adapter, in place of one of its name where that is asked for; return the refusal, None without."""
        if problem := _conflict(module, self._served, () if in_place else self._modules):
            return 400, "InvalidUserInput", problem
        if problem := _problem(module, self._options, self._read(module.path)):
            is_missing = problem.startswith("Loading lora ")
            return (404, "NotFoundError", problem) if is_missing else (500, "InternalServerError", _plain(problem))
        self._modules[module.name] = module
        return None

    def unload(self, name: str) -> tuple[int, str, str] | None:
        """Remove an adapter; return the refusal, None without."""
        if not name:
            return 400, "InvalidUserInput", "'lora_name' needs to be provided to unload a LoRA adapter."
        if name not in self._modules:
            return 404, "NotFoundError", f"The lora adapter '{name}' cannot be found."
        del self._modules[name]
        return None


def allows_updates(environment: Mapping[str, str]) -> bool:
    """Whether callers may load and unload adapters."""
    return environment.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "").strip().lower() in ("1", "true")


def _plain(problem: str) -> str:
    """A message as vLLM's API sends it, without paths."""
    return _PATH.sub("<path>", problem)


def _conflict(module: LoRAModulePath, served: Sequence[str], loaded: Iterable[str]) -> str | None:
    if not module.name or not module.path:
        return "Both 'lora_name' and 'lora_path' must be provided."
    if module.name in served:
        return f"The lora adapter '{module.name}' conflicts with a served base model."
    if module.name in loaded:
        return (
            f"The lora adapter '{module.name}' has already been loaded. If you want to load the adapter in place, set "
            "'load_inplace' to True."
        )
    return None


def _problem(module: LoRAModulePath, options: argparse.Namespace, files: AdapterFiles) -> str | None:
    missing = f"Loading lora {module.name} failed: No adapter found for {module.path}"
    if not options.enable_lora:
        reason: str | None = "LoRA is not enabled. Use --enable-lora to enable LoRA."
    elif files.config is None:
        return missing
    else:
        try:
            config = json.loads(files.config)
        except ValueError as error:
            reason = str(error)
        else:
            reason = refused_config(config, options.max_lora_rank)
            if reason is None and not files.has_weights:
                reason = f"{module.path} doesn't contain tensors"
    if reason is not None and options.tensor_parallel_size > 1:  # the engine hears of it from a worker process
        reason = f"Worker failed with error '{reason}', please check the stack trace above for the root cause"
    return reason and f"Call to add_lora method failed: {reason}"


def refused_config(config: object, max_rank: int) -> str | None:
    """Return why vLLM refuses the configuration of an adapter, None where it does not."""
    if not isinstance(config, dict):
        return "list indices must be integers or slices, not str"
    if missing := {"r", "lora_alpha", "target_modules"} - config.keys():
        return f"Missing required configuration fields: {missing}"
    rank, pattern = config["r"], config.get("rank_pattern") or {}
    if not isinstance(rank, int | float):
        return f"'<=' not supported between instances of '{type(rank).__name__}' and 'int'"
    if rank <= 0:
        return f"LoRA rank `r` must be a positive integer, got {rank}."
    for key, module_rank in pattern.items():
        if not isinstance(module_rank, int) or module_rank <= 0:
            return f"LoRA rank for `{key}` in `rank_pattern` must be a positive integer, got {module_rank}."
    if not isinstance(alpha := config["lora_alpha"], int | float):
        return f"unsupported operand type(s) for /: '{type(alpha).__name__}' and '{type(rank).__name__}'"
    reasons = list(_unsupported_parts(config))
    if (largest := max([rank, *pattern.values()])) > max_rank:
        reasons.append(f"LoRA rank {largest} is greater than max_lora_rank {max_rank}.")
    if config.get("bias", "none") != "none":
        reasons.append("Adapter bias is not supported.")
    return f"{' '.join(reasons)}" if reasons else None


def _unsupported_parts(config: dict[str, Any]) -> Iterable[str]:
    if saved := [name for name in config.get("modules_to_save") or () if name not in ("classifier", "score")]:
        yield (
            'vLLM only supports modules_to_save being either None or ["classifier", "score"] for classification '
            f"models. Unsupported modules_to_save: {saved}"
        )
    for key in ("use_dora", "lora_bias"):
        if config.get(key):
            yield _UNSUPPORTED[key]
    init = config.get("init_lora_weights", True)
    if isinstance(init, str) and init.lower() not in _INITS:
        yield f"vLLM does not support init_lora_weights={init!r}."
    for key, text in list(_UNSUPPORTED.items())[2:]:
        if config.get(key):
            yield text
