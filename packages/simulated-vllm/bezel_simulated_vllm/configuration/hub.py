"""Configuration of hub models that a command line names: shape and sizes, no weights.

The files are deleted as soon as the start has read them. HF_ENDPOINT is the hub's address and HF_HUB_OFFLINE forbids
requests to it, both as in huggingface_hub. Without HF_ENDPOINT nothing is downloaded: a model of the catalogue has the
files of `synthetic_weights`, and no other is found.
"""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bezel_catalog import NotInCatalogueError
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
    if offline or not missing:
        yield machine
        return
    with tempfile.TemporaryDirectory(prefix="localcloud-hub-") as folder:
        mounts: dict[str, Path] = {}
        for number, name in enumerate(missing):
            files = _download(base, name) if base else _synthetic_files(name)
            if files:
                mounts[name] = Path(folder) / str(number)
                mounts[name].mkdir()
            for file, content in files.items():
                (mounts[name] / file).write_bytes(content)
        yield replace(machine, mounts={**machine.mounts, **mounts})


def _synthetic_files(name: str) -> dict[str, bytes]:
    """Return the files of a model of the catalogue, none of any other."""
    from bezel_simulated_vllm.synthetic_weights import model_files

    try:
        files = model_files(name)
    except NotInCatalogueError:
        return {}
    return {file: files[file] for file in _FILES}


def _download(base: str, name: str) -> dict[str, bytes]:
    """Return the files of a model that the hub has.

    Raises:
        StartError: The hub has no such model, or does not respond.
    """
    import httpx

    from bezel_base.loopback.plain_http import NO_TLS  # late: it loads ssl, which a local model does without

    files: dict[str, bytes] = {}
    try:
        for file in _FILES:
            response = httpx.get(f"{base}/{name}/resolve/main/{file}", timeout=30, trust_env=False, verify=NO_TLS)
            if file == _FILES[0] and not response.is_success:
                raise refusal("unknown-repository", name=name)
            if response.is_success:
                files[file] = response.content
    except httpx.HTTPError:
        raise refusal("hub-unreachable", name=name) from None
    return files
