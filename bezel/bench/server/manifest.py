"""Collection of a manifest's values: from the server, the caller, and this machine.

Leaves the shape to bezel.bench.result.records. A value that no source reports is null, never guessed.
"""

from __future__ import annotations

import os
import platform as host
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.bench.result.records import Client, Machine, ServedBy
from bezel.bench.server.counters import series

if TYPE_CHECKING:
    from bezel.bench.server.http_probe import Ask

_SECRET_OPTIONS = ("--header", "--api-key", "--token", "--extra-body")
_HIDDEN = "(hidden)"


def this_client(*, workers: int, tls: bool) -> Client:
    """Return this machine as a client."""
    return Client(
        bezel=version("bezel"), python=host.python_version(), machine=this_machine(), workers=workers, tls=tls
    )


def this_machine() -> Machine:
    """Return the cores that this process may use, the processor's name, memory and kernel."""
    lines = _lines("/proc/cpuinfo")
    cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), host.machine())
    memory = next(
        (int(line.split()[1]) * 1024 for line in _lines("/proc/meminfo") if line.startswith("MemTotal:")), None
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(cores=cores, cpu=cpu, memory_bytes=memory, kernel=f"{host.system()} {host.release()}")


def told_by_server(ask: Ask, model: str, known: ServedBy) -> ServedBy:
    """Return the server's own report, completed by the values that the caller knows.

    Args:
        ask: Sends it a request.
        model: The served id.
        known: The caller's values, which take precedence.
    """
    version_said = ask("/version", None).json().get("version")
    entries = ask("/v1/models", None).json().get("data")
    entry = next(
        (one for one in entries if isinstance(one, dict) and one.get("id") == model)
        if isinstance(entries, list)
        else iter(()),
        {},
    )
    length = entry.get("max_model_len")
    cache = cache_config(ask)
    found = {
        "vllm_version": version_said if isinstance(version_said, str) else None,
        "max_model_len": length if isinstance(length, int) else None,
        "kv_cache_dtype": cache.get("cache_dtype"),
    }
    return known.model_copy(update={name: value for name, value in found.items() if getattr(known, name) is None})


def cache_config(ask: Ask) -> dict[str, str]:
    """Return the labels of `vllm:cache_config_info`, {} where there is none."""
    answer = ask("/metrics", None)
    if answer.status != 200:
        return {}
    lines = series(answer.body.decode("utf-8", "replace"))
    return next((labels for name, labels, _ in lines if name == "vllm:cache_config_info"), {})


def kv_cache_tokens(config: dict[str, str]) -> int | None:
    """Return the tokens that the KV cache holds, from the labels of `vllm:cache_config_info`; None if not given."""
    tokens = config.get("kv_cache_size_tokens", "")
    return int(tokens) if tokens.isdecimal() else None


def shown(command: list[str]) -> list[str]:
    """Return a command line without its secrets."""
    hidden, result = False, []
    for word in command:
        option, equals, _ = word.partition("=")
        if hidden:
            result.append(_HIDDEN)
        elif option in _SECRET_OPTIONS and equals:
            result.append(f"{option}={_HIDDEN}")
        else:
            result.append(word)
        hidden = word in _SECRET_OPTIONS
    return result


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
