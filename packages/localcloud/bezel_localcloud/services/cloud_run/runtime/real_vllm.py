"""Command of a real vLLM, found on PATH, that replaces a container: localcloud's `SERVER=vllm`.

It serves a given small model on this machine's hardware, so arguments about the accelerator are rewritten: path,
memory, parallelism, quantisation, kernels. Names, lengths, batching, parsers and everything else pass unchanged. Each
change is a note for the log. Leaves out processes: the caller starts the command.
"""

import json
import tomllib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bezel_catalog import vllm_options
from bezel_localcloud.core.paths import Paths
from bezel_localcloud.services.cloud_run.runtime.real_adapters import real_modules
from bezel_simulated_vllm.configuration.checkpoint import Checkpoint, read_checkpoint
from bezel_simulated_vllm.configuration.kv_layout import kv_layout
from bezel_simulated_vllm.configuration.options import human_int
from bezel_simulated_vllm.release import DEFAULT_RELEASE

_MIB = 1 << 20
_CACHE_AT_LEAST = 64 * _MIB
_CPU_BLOCK = 128
_REQUESTS = 4


@dataclass(frozen=True)
class _Option:
    """One option of the command line: its name without dashes and the text of its values."""

    name: str
    arguments: tuple[str, ...]
    values: tuple[str, ...]


def command(
    args: Sequence[str],
    *,
    model_dir: Path,
    address: str,
    paths: Paths | None = None,
    mounts: Mapping[str, str] | None = None,
) -> tuple[list[str], list[str], dict[str, str]]:
    """Return the command line of a real server that responds as the container would.

    Args:
        args: the container's arguments after `vllm serve`.
        model_dir: the small model's folder; an assistant for speculative decoding is beside it as `<name>-assistant`.
        address: path of the socket that it listens on.
        paths: layout of localcloud's directory, where adapters for the small model are written; None for the notes.
        mounts: mount path of the container -> folder of this machine.

    Returns:
        The command beginning with "vllm", a note for each rewritten argument, and environment variables to add unless
        they are set already.

    Raises:
        OSError: `model_dir` holds no readable config.json.
    """
    path, options = _parse(args)
    model = read_checkpoint(model_dir)
    result = ["vllm", "serve", str(model_dir)]
    notes = [f"model {path or 'of the arguments'} -> {model_dir}"]
    named = False
    for option in options:
        named = named or option.name == "served-model-name"
        if option.name == "lora-modules":
            result += ["--lora-modules", *real_modules(option.values, model, paths, mounts or {}, notes)]
        else:
            result += _rewrite(option, model, model_dir, notes)
    if path and not named:
        result.append(f"--served-model-name={path}")
        notes.append(f"--served-model-name={path} added: clients know the model by its path")
    result += [f"--kv-cache-memory-bytes={_cache_bytes(options, model)}", "--enforce-eager"]
    notes.append(f"{result[-2]} --enforce-eager added: memory and compilation for this machine")
    result.append(f"--uds={address}")
    return result, notes, environment()


def environment() -> dict[str, str]:
    """Return the variables of a real server that sends no request beyond this machine."""
    return dict(_table()["environment"])


@cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads((Path(__file__).parents[3] / "data" / "real_vllm.toml").read_text(encoding="utf-8"))


def _parse(args: Sequence[str]) -> tuple[str | None, list[_Option]]:
    """The model's path and the options, each with its values."""
    options, arguments = vllm_options(DEFAULT_RELEASE), deque(args)
    path: str | None = None
    parsed: list[_Option] = []
    while arguments:
        word = arguments.popleft()
        if not word.startswith("-"):
            path = path or word
            continue
        flag, equals, value = word.partition("=")
        known_options = options.find(flag.partition(".")[0])
        name, kind = (known_options[0].name, known_options[0].kind) if known_options else (flag.lstrip("-"), "")
        values = [value] if equals else []
        takes = not equals and kind in {"value", "values", "append", "optional-value"}
        while takes and arguments and not arguments[0].startswith("--") and (kind == "values" or not values):
            values.append(arguments.popleft())
        if name == "model" and values:
            path = path or values[0]
        parsed.append(_Option(name, (word,) if equals else (flag, *values), tuple(values)))
    return path, parsed


def _rewrite(option: _Option, model: Checkpoint, model_dir: Path, notes: list[str]) -> list[str]:
    text = " ".join(option.arguments)
    reason = _table()["dropped"].get(option.name)
    if reason is not None:
        notes += [f"{text} left out: {reason}"] if reason else []
        return []
    if option.name == "max-model-len" and option.values:
        length = option.values[0]
        if length not in {"auto", "-1"} and human_int(length) > model.context:
            notes.append(f"{text} -> {model.context}: the small model has no longer context")
            return [f"--max-model-len={model.context}"]
    if option.name in {"spec-model", "spec-method", "spec-tokens", "speculative-config"}:
        return _speculative(option, model_dir, notes)
    return list(option.arguments)


def _speculative(option: _Option, model_dir: Path, notes: list[str]) -> list[str]:
    """Use the assistant beside the small model in place of the real one; without one, no speculation by a model."""
    assistant = model_dir.with_name(model_dir.name + "-assistant")
    text = " ".join(option.arguments)
    flag = option.arguments[0].partition("=")[0]
    config = json.loads(option.values[0]) if option.values and flag == "--speculative-config" else {}
    ngram = config.get("method") == "ngram"
    if ngram or (flag == "--spec-method" and option.values == ("ngram",)):
        return list(option.arguments)
    if not (assistant / "config.json").is_file():
        notes.append(f"{text} left out: there is no assistant {assistant}")
        return []
    if flag == "--spec-model" or flag.endswith(".model"):
        notes.append(f"{text} -> {assistant}")
        return [f"{flag}={assistant}"]
    if "model" in config:
        notes.append(f"{flag}: model {config['model']} -> {assistant}")
        return [f"{flag}={json.dumps(config | {'model': str(assistant)})}"]
    return list(option.arguments)


def _cache_bytes(options: list[_Option], model: Checkpoint) -> int:
    """Cache size for a few requests of the longest length."""
    values = {option.name: option.values[0] for option in options if option.values}
    length = values.get("max-model-len", str(model.context))
    tokens = model.context if length in {"auto", "-1"} else min(human_int(length), model.context)
    batched = human_int(values.get("max-num-batched-tokens", "2048"))
    layout = kv_layout(model, dtype="auto", in_flight_tokens=2 * batched, block=_CPU_BLOCK)
    needed = layout.max_blocks(tokens) * layout.block_bytes
    return max(_CACHE_AT_LEAST, -(-_REQUESTS * needed // _MIB) * _MIB)
