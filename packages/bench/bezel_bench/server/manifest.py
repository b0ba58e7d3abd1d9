"""Collection of a manifest's values: from the server, the caller, and this machine.

Leaves the shape to bezel_bench.result.records, whose models are imported where a value gets it: a load begins sooner
without them. A value that no source reports is null, never guessed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bezel_bench import ENGINE
from bezel_bench.server.counters import series

if TYPE_CHECKING:
    from bezel_bench.result.records import Client, Machine, ServedBy
    from bezel_bench.server.http_probe import Ask

# Options whose value may hold a credential under a name of its own.
_OPEN_OPTIONS = ("--header", "--extra-body")
_HIDDEN = "(hidden)"


class ServerReport(NamedTuple):
    """What a server says of itself; None is what it does not say.

    Attributes:
        kv_cache_tokens: The tokens that its cache holds.
    """

    vllm_version: str | None
    max_model_len: int | None
    kv_cache_dtype: str | None
    kv_cache_tokens: int | None


def this_client(*, workers: int, tls: bool) -> Client:
    """Return this machine as a client, with its engine beside the version unless that is pure Python as usual."""
    import platform as host
    from importlib import metadata

    from bezel_bench.result.records import Client

    version = metadata.version("bezel-bench")
    return Client(
        bezel=f"{version} ({ENGINE})" if ENGINE else version,
        python=host.python_version(),
        machine=this_machine(),
        workers=workers,
        tls=tls,
    )


def this_machine() -> Machine:
    """Return the cores that this process may use, the processor's name, memory and kernel."""
    import platform as host

    from bezel_bench.result.records import Machine

    cpu = _value("/proc/cpuinfo", "model name") or host.machine()
    kibibytes = _value("/proc/meminfo", "MemTotal").removesuffix("kB")
    memory = int(kibibytes) * 1024 if kibibytes else None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(cores=cores, cpu=cpu, memory_bytes=memory, kernel=f"{host.system()} {host.release()}")


def ask_server(ask: Ask, model: str) -> ServerReport:
    """Return the server's own report.

    Args:
        ask: Sends it a request.
        model: The served id.
    """
    version = ask("/version", None).json().get("version")
    entries = ask("/v1/models", None).json().get("data")
    listed = entries if isinstance(entries, list) else []
    entry = next((entry for entry in listed if isinstance(entry, dict) and entry.get("id") == model), {})
    length = entry.get("max_model_len")
    return ServerReport(
        vllm_version=version if isinstance(version, str) else None,
        max_model_len=length if isinstance(length, int) else None,
        kv_cache_dtype=_cache_config(ask).get("cache_dtype"),
        kv_cache_tokens=_kv_cache_tokens(_cache_config(ask)),
    )


def served_by(report: ServerReport, stated: ServedBy) -> ServedBy:
    """Return the server's own report, completed by the caller's values, which take precedence."""
    reported = report._asdict()
    del reported["kv_cache_tokens"]
    return stated.model_copy(update={name: value for name, value in reported.items() if getattr(stated, name) is None})


def _cache_config(ask: Ask) -> dict[str, str]:
    """Return the labels of `vllm:cache_config_info`, {} where there is none."""
    response = ask("/metrics", None)
    lines = series(response.text) if response.status == 200 else ()
    return next((labels for name, labels, _ in lines if name == "vllm:cache_config_info"), {})


def _kv_cache_tokens(config: dict[str, str]) -> int | None:
    """Return the tokens that the KV cache holds, from the labels of `vllm:cache_config_info`; None if not given."""
    tokens = config.get("kv_cache_size_tokens", "")
    return int(tokens) if tokens.isdecimal() else None


def redact_command(command: list[str]) -> list[str]:
    """Return a command line without its secrets."""
    from bezel_base.credentials.names import option_names_secret  # late: a load begins without it

    def holds_secret(option: str) -> bool:
        return option in _OPEN_OPTIONS or (option.startswith("--") and option_names_secret(option))

    hidden, result = False, []
    for word in command:
        option, equals, _ = word.partition("=")
        if hidden:
            result.append(_HIDDEN)
        elif holds_secret(option) and equals:
            result.append(f"{option}={_HIDDEN}")
        else:
            result.append(word)
        hidden = not equals and holds_secret(option)
    return result


def _value(path: str, name: str) -> str:
    """Return the value of the first line of that name in a file of `/proc`; "" where there is none."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
