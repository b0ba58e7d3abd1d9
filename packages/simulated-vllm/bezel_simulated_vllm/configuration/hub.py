"""Configuration of models and adapters of the hub that a command line names: shape and sizes, no weights.

The files are deleted as soon as the start has read them. HF_ENDPOINT is the hub's address and HF_HUB_OFFLINE forbids
requests to it, both as in huggingface_hub. Without HF_ENDPOINT nothing is downloaded: a model of the catalogue has the
files of `synthetic_weights`, and no other is found.
"""

from __future__ import annotations

import json
import re
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from bezel_catalog import NotInCatalogueError
from bezel_simulated_vllm.configuration.adapters import CONFIG, WEIGHTS, AdapterFiles, local_files
from bezel_simulated_vllm.configuration.failures import StartError, refusal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from bezel_simulated_vllm.configuration.hardware import SimulatedMachine

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_FILES = ("config.json", "model.safetensors.index.json")
_TRUE = {"1", "ON", "YES", "TRUE"}
_MAIN = "main"
_ONE_FILE = "model.safetensors"
_LENGTH_BYTES, _LONGEST_HEADER = 8, 100_000_000  # of the format
_LONGEST_FILE = 64 << 20


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
    base, token = environment.get("HF_ENDPOINT", "").rstrip("/"), environment.get("HF_TOKEN", "")
    models = [options.model, options.spec_model, (options.speculative_config or {}).get("model")]
    missing = [name for name in models if isinstance(name, str) and is_hub_id(name) and name not in machine.mounts]
    if offline or not missing:
        yield machine
        return
    with tempfile.TemporaryDirectory(prefix="localcloud-hub-") as folder:
        mounts: dict[str, Path] = {}
        for number, name in enumerate(missing):
            revision = (options.revision or _MAIN) if name == options.model else _MAIN
            files = _download(base, name, revision, token) if base else _synthetic_files(name)
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


def _download(base: str, name: str, revision: str, token: str) -> dict[str, bytes]:
    """Return the files of a model that the hub has.

    Raises:
        StartError: The hub has no such model or revision, it may not be read, or the hub does not respond.
    """
    config, index = (_file(base, name, revision, token, file) for file in _FILES)
    if config is None:
        raise refusal("unknown-repository", name=name)
    if index is None:
        size = _size(base, name, revision, token)
        index = json.dumps({"metadata": {"total_size": size}, "weight_map": {}}).encode() if size else None
    return {_FILES[0]: config, **({_FILES[1]: index} if index is not None else {})}


def adapter_reader(machine: SimulatedMachine, environment: Mapping[str, str]) -> Callable[[str], AdapterFiles]:
    """Return a function that reads an adapter by a path of the container, or by its name on the hub.

    Of an adapter on the hub its configuration is downloaded from the default branch, as vLLM takes no revision of one;
    a hub that does not give it is an adapter without files.
    """
    base, token = environment.get("HF_ENDPOINT", "").rstrip("/"), environment.get("HF_TOKEN", "")
    offline = environment.get("HF_HUB_OFFLINE", "").upper() in _TRUE

    def read(path: str) -> AdapterFiles:
        if offline or not base or not is_hub_id(path) or path in machine.mounts:
            return local_files(machine.resolve(path))
        try:
            config = _file(base, path, _MAIN, token, CONFIG)
            has_weights = any(_file(base, path, _MAIN, token, name, longest=1) is not None for name in WEIGHTS)
        except StartError:
            return AdapterFiles(None, has_weights=False)
        return AdapterFiles(None if config is None else config.decode(errors="replace"), has_weights)

    return read


def _size(base: str, name: str, revision: str, token: str) -> int:
    """Return the bytes of the tensors of a model in one file, 0 where the hub has none; only its header is read."""
    start = _file(base, name, revision, token, _ONE_FILE, longest=_LENGTH_BYTES)
    if start is None or len(start) < _LENGTH_BYTES:
        return 0
    end = _LENGTH_BYTES + int.from_bytes(start[:_LENGTH_BYTES], "little")
    header = _file(base, name, revision, token, _ONE_FILE, longest=min(end, _LONGEST_HEADER)) or b""
    try:
        tensors = json.loads(header[_LENGTH_BYTES:end])
        return max(int(row["data_offsets"][1]) for key, row in tensors.items() if key != "__metadata__")
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return 0


def _file(base: str, name: str, revision: str, token: str, file: str, *, longest: int | None = None) -> bytes | None:
    """Return a file of a repository, None where the hub does not give it.

    Raises:
        StartError: The hub does not respond.
    """
    import httpx

    from bezel_base.loopback.plain_http import NO_TLS  # late: it loads ssl, which a local model does without

    url = f"{base}/{name}/resolve/{quote(revision, safe='')}/{file}"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {"Range": f"bytes=0-{longest - 1}"} if longest else {}
    try:
        with (
            httpx.Client(timeout=30, trust_env=False, verify=NO_TLS) as client,
            client.stream("GET", url, headers=headers, follow_redirects=True) as response,
        ):
            return _first_bytes(response.iter_bytes(), longest or _LONGEST_FILE) if response.is_success else None
    except httpx.HTTPError:
        raise refusal("hub-unreachable", name=name) from None


def _first_bytes(pieces: Iterable[bytes], longest: int) -> bytes:
    """Return the first bytes of a body, however long it is."""
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) >= longest:
            break
    return bytes(content[:longest])
