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

from bezel.loopback.plain_http import NO_TLS
from bezel.simulated_vllm.configuration.failures import StartError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from bezel.simulated_vllm.configuration.hardware import SimulatedMachine

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
    wanted = [name for name in _named(options) if is_hub_id(name) and name not in machine.mounts]
    if offline or not base or not wanted:
        yield machine
        return
    with tempfile.TemporaryDirectory(prefix="localcloud-hub-") as folder:
        mounts = {name: _download(base, name, Path(folder) / str(number)) for number, name in enumerate(wanted)}
        yield replace(machine, mounts={**machine.mounts, **mounts})


def _named(options: argparse.Namespace) -> list[str]:
    names = [options.model, options.spec_model, (options.speculative_config or {}).get("model")]
    return [name for name in names if isinstance(name, str)]


def _download(base: str, name: str, folder: Path) -> Path:
    import httpx

    folder.mkdir()
    try:
        for file in _FILES:
            answer = httpx.get(f"{base}/{name}/resolve/main/{file}", timeout=30, trust_env=False, verify=NO_TLS)
            if file == _FILES[0] and not answer.is_success:
                raise _unknown(name)
            if answer.is_success:
                (folder / file).write_bytes(answer.content)
    except httpx.HTTPError:
        raise _unreachable(name) from None
    return folder


def _unknown(name: str) -> StartError:
    return StartError(
        "OSError",
        f"{name} is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'\n"
        "If this is a private repository, make sure to pass a token having permission to this repo either by logging "
        "in with `hf auth login` or by passing `token=<your_token>`",
    )


def _unreachable(name: str) -> StartError:
    return StartError(
        "OSError",
        "We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached "
        f"files.\nCheck your internet connection or see how to run the library in offline mode. ({name})",
    )
