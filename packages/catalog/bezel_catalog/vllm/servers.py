"""Recordings of the API server of each vLLM release: its document, its request models, its metrics.

Owns the reading of data/vllm/servers/<release>/: `openapi.json.gz` is the document that the server sends,
`requests.json.gz` holds the pydantic schemas of its request models with the names of their functions, `metrics.json`
has the families of its /metrics with their help. Leaves the options of the same release to `options`.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_catalog.loader import NotInCatalogueError
from bezel_catalog.vllm.options import RECORDINGS, vllm_versions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SERVERS = RECORDINGS / "servers"
DOCUMENT, MODELS, METRICS = "openapi.json.gz", "requests.json.gz", "metrics.json"
_FILES = (DOCUMENT, MODELS, METRICS)


@dataclass(frozen=True, slots=True, eq=False)
class RecordedServer:
    """The recording of one release's server, equal to itself alone.

    Attributes:
        release: the release, as the server itself names it.
        document: the OpenAPI document.
        models: schemas of request bodies, by our own names of them (`request_recorder`).
        families: help of the families of /metrics by name; without those of drafting, which a plain server has not.
        cache_config: labels of `vllm:cache_config_info` with their values.
        architectures: names of the model classes that the release serves.
    """

    release: str
    document: Mapping[str, Any]
    models: Mapping[str, Any]
    families: Mapping[str, str]
    cache_config: Mapping[str, str]
    architectures: tuple[str, ...]


def recorded_servers() -> tuple[str, ...]:
    """Return the releases whose options and whose server are both recorded, sorted by name."""
    return tuple(name for name in vllm_versions() if all((SERVERS / name / file).exists() for file in _FILES))


@functools.cache
def recorded_server(release: str) -> RecordedServer:
    """Return the recording of a release such as "0.32.0".

    Raises:
        NotInCatalogueError: the release's server was not recorded.
    """
    if release not in recorded_servers():
        raise NotInCatalogueError("server of a vLLM release", release, recorded_servers())
    return read_server(release, SERVERS / release)


def read_server(release: str, folder: Path) -> RecordedServer:
    """Return the recording in a folder."""
    metrics = json.loads((folder / METRICS).read_text(encoding="utf-8"))
    recorded = _read(folder / MODELS)
    return RecordedServer(
        release=release,
        document=_read(folder / DOCUMENT),
        models=recorded["models"],
        families=metrics["families"],
        cache_config=metrics["cache_config"],
        architectures=tuple(recorded["architectures"]),
    )


def metrics_of(text: str) -> dict[str, dict[str, str]]:
    """Return what is recorded of the text of a server's /metrics."""
    families = dict(re.findall(r"(?m)^# HELP (vllm:\S+) (.*)$", text))
    row = re.search(r"(?m)^vllm:cache_config_info\{(.*)\} ", text)
    return {"families": families, "cache_config": dict(re.findall(r'(\w+)="([^"]*)"', row[1] if row else ""))}


def _read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return content
