"""Download of the configuration of hub models that a command line names: shape and sizes, no weights.

The files are deleted as soon as the start has read them. HF_ENDPOINT is the hub's address and HF_HUB_OFFLINE forbids
requests to it, both as in huggingface_hub; without HF_ENDPOINT nothing is downloaded.
"""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bezel_base.loopback.plain_http import NO_TLS
from bezel_simulated_vllm.configuration.failures import refusal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from bezel_simulated_vllm.configuration.hardware import SimulatedMachine

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_FILES = ("config.json", "model.safetensors.index.json")
_TRUE = {"1", "ON", "YES", "TRUE"}


def is_hub_id(name: str) -> bool:
    """Whether a model argument is the name of a model on the hub."""
    return _ID.fullmatch(name) is not None and not Path(name).exists()


@contextmanager
def hub_models(
    options: argparse.Namespace, machine: SimulatedMachine, environment: Mapping[str, str]
) -> Iterator[SimulatedMachine]:
    """Yield the machine with a mount for each hub model that the command line names.

    Raises:
        StartError: The hub has no such model, or does not respond.
    """
    offline = environment.get("HF_HUB_OFFLINE", "").upper() in _TRUE
    base = environment.get("HF_ENDPOINT", "").rstrip("/")
    models = [options.model, options.spec_model, (options.speculative_config or {}).get("model")]
    missing = [name for name in models if isinstance(name, str) and is_hub_id(name) and name not in machine.mounts]
    if offline or not base or not missing:
        yield machine
        return
    with tempfile.TemporaryDirectory(prefix="localcloud-hub-") as folder:
        mounts = {name: _download(base, name, Path(folder) / str(number)) for number, name in enumerate(missing)}
        yield replace(machine, mounts={**machine.mounts, **mounts})


def _download(base: str, name: str, folder: Path) -> Path:
    import httpx

    folder.mkdir()
    try:
        for file in _FILES:
            response = httpx.get(f"{base}/{name}/resolve/main/{file}", timeout=30, trust_env=False, verify=NO_TLS)
            if file == _FILES[0] and not response.is_success:
                raise refusal("unknown-repository", name=name)
            if response.is_success:
                (folder / file).write_bytes(response.content)
    except httpx.HTTPError:
        raise refusal("hub-unreachable", name=name) from None
    return folder
