"""Hardware of the simulated machine: its accelerator (from `hardware.toml`), its memory, its mounts.

The rows are localcloud's own. Leaves out the catalogue's accelerators, which the planner uses.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel_base.errors import Problem, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

GIB = 1 << 30


@dataclass(frozen=True)
class Xla:
    """Parameters of a TPU only, whose graphs are compiled before the first request (see `hardware.toml`).

    Attributes:
        resident_per_weight: bytes that stay in memory for each byte of the weights' files.
        page_tokens: tokens in a block of the KV cache.
        logit_copies: number of copies of a batch's logits in memory, in 32 bits.
        graph_seconds: seconds to compile one graph, independent of the model.
        graph_seconds_per_gb: additional seconds for each GB of the model's weights.
        cached_share: share of these seconds where an earlier start has left the graphs in the cache.
    """

    resident_per_weight: float
    page_tokens: int
    logit_copies: float
    graph_seconds: float
    graph_seconds_per_gb: float
    cached_share: float


@dataclass(frozen=True)
class Accelerator:
    """One kind of accelerator; the names of the fields contain their units (see `hardware.toml`).

    `xla` is set for a TPU and None for a GPU.
    """

    name: str
    memory_gib: float
    memory_bytes_per_second: float
    host_bytes_per_second: float
    flops_per_second: float
    memory_efficiency: float
    compute_efficiency: float
    step_overhead_seconds: float
    runtime_gib: float
    activation_gib: float
    activation_gib_per_1k_tokens: float
    compute_capability: str
    load_bytes_per_second: float
    compile_seconds: float
    default_batched_tokens: int
    default_sequences: int
    source: str
    date: str
    sequence_overhead_seconds: float = 0.0
    xla: Xla | None = None


@dataclass(frozen=True)
class SimulatedMachine:
    """The machine of one instance.

    Attributes:
        accelerator: the kind of accelerator.
        accelerators: their number.
        cpu: number of vCPUs.
        memory_gib: the container's memory limit in GiB.
        mounts: absolute path in the container -> directory of this machine.
    """

    accelerator: Accelerator
    accelerators: int
    cpu: int
    memory_gib: float
    mounts: Mapping[str, Path]

    def resolve(self, path: str) -> Path:
        """Return the directory of this machine for a path in the container."""
        for mount, directory in sorted(self.mounts.items(), key=lambda item: -len(item[0])):
            if path == mount or path.startswith(mount.rstrip("/") + "/"):
                return directory / path[len(mount) :].strip("/")
        return Path(path)


@cache
def accelerators() -> dict[str, Accelerator]:
    """Return every accelerator of `hardware.toml`, by name."""
    table = tomllib.loads(Path(__file__).with_name("hardware.toml").read_text(encoding="utf-8"))
    return {
        name: Accelerator(name=name, **{**row, "xla": Xla(**row["xla"]) if "xla" in row else None})
        for name, row in table.items()
    }


def machine_from_environment(environment: Mapping[str, str]) -> SimulatedMachine:
    """Return the machine that localcloud describes in the environment of an instance.

    Args:
        environment: the environment with LOCALCLOUD_HARDWARE and LOCALCLOUD_MOUNTS, both JSON objects; the defaults are
            an L4 with 4 vCPUs and 16 GiB, and no mounts.

    Raises:
        UserError: a variable is not such an object, or the accelerator is not one of `hardware.toml`.
    """
    row: dict[str, Any] = {"accelerator": "nvidia-l4", "accelerators": 1, "cpu": 4, "memory_gib": 16}
    row.update(_object(environment, "LOCALCLOUD_HARDWARE", _HARDWARE))
    chips = accelerators()
    name = str(row["accelerator"])
    if name not in chips:
        repair = f"choose one of {', '.join(sorted(chips))}, or add a table to hardware.toml."
        raise UserError(Problem("LOCALCLOUD_HARDWARE: accelerator", name, "it cannot be simulated.", repair))
    mounts = _object(environment, "LOCALCLOUD_MOUNTS", _MOUNTS)
    try:
        return SimulatedMachine(
            accelerator=chips[name],
            accelerators=int(row["accelerators"]),
            cpu=int(row["cpu"]),
            memory_gib=float(row["memory_gib"]),
            mounts={str(mount): Path(directory) for mount, directory in mounts.items()},
        )
    except (TypeError, ValueError) as error:
        consequence = f"it describes no machine: {error}."
        raise UserError(Problem("LOCALCLOUD_HARDWARE", row, consequence, f"set it to e.g. {_HARDWARE}")) from None


_HARDWARE = '{"accelerator": "nvidia-l4", "accelerators": 1, "cpu": 4, "memory_gib": 16}'
_MOUNTS = '{"/mnt/models": "/home/me/models"}'


def _object(environment: Mapping[str, str], name: str, example: str) -> dict[str, Any]:
    """Return the JSON object of a variable, empty without it."""
    text = environment.get(name) or "{}"
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        value, reason = None, str(error)
    else:
        reason = f"expected an object, got {type(value).__name__}"
    if not isinstance(value, dict):
        consequence = f"it cannot be read as JSON: {reason}."
        raise UserError(Problem(name, text, consequence, f"set it to e.g. {example}"))
    return value
