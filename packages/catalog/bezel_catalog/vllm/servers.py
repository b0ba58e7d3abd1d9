"""What the API server of each vLLM release publishes and validates, as it was recorded from a running server.

Owns the reading of data/vllm/servers/<release>/: `openapi.json.gz` is the document that the server sends,
`requests.json.gz` holds the pydantic schemas of its request models with the names of their functions. Leaves the
options of the same release to `options`.
"""

from __future__ import annotations

import functools
import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_catalog.loader import NotInCatalogueError
from bezel_catalog.vllm.options import RECORDINGS, vllm_versions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SERVERS = RECORDINGS / "servers"
DOCUMENT, MODELS = "openapi.json.gz", "requests.json.gz"


@dataclass(frozen=True, slots=True, eq=False)
class RecordedServer:
    """The recording of one release's server, equal to itself alone.

    Attributes:
        release: the release, as the server itself names it.
        document: the OpenAPI document.
        models: schemas of request bodies, by our own names of them (`request_models.py` of the recorders).
    """

    release: str
    document: Mapping[str, Any]
    models: Mapping[str, Any]


def recorded_servers() -> tuple[str, ...]:
    """Return the releases whose options and whose server are both recorded, sorted by name."""
    files = (DOCUMENT, MODELS)
    return tuple(name for name in vllm_versions() if all((SERVERS / name / file).exists() for file in files))


@functools.cache
def recorded_server(release: str) -> RecordedServer:
    """Return the recording of a release such as "0.32.0".

    Raises:
        NotInCatalogueError: the release's server was not recorded.
    """
    if release not in recorded_servers():
        raise NotInCatalogueError("server of a vLLM release", release, recorded_servers())
    folder = SERVERS / release
    return RecordedServer(release, _read(folder / DOCUMENT), _read(folder / MODELS)["models"])


def _read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return content
