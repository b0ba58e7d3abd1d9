"""What a release of vLLM knows: its architectures, those that it dropped, and those of its plugins.

Recorded by tools/vllm/recorders/architectures.py into data/vllm/architectures/RELEASE.json.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

from bezel_catalog.loader import DATA, NotInCatalogueError

_FOLDER = DATA / "vllm" / "architectures"
_FIRST = "0.32.0"


@dataclass(frozen=True, slots=True)
class KnownArchitecture:
    """An architecture of a release.

    `kinds` are the tables of the registry that it stands in: text, multimodal, embedding, classification,
    token-classification, reward, late-interaction, draft, transformers. `module` is where its class is defined.
    """

    name: str
    kinds: tuple[str, ...]
    module: str
    hybrid: bool = False
    attention_free: bool = False
    generates: bool = False


@functools.cache
def _recording(release: str) -> dict[str, Any]:
    path = _FOLDER / f"{release}.json"
    if not path.is_file():
        raise NotInCatalogueError("list of architectures of vLLM", release, recorded_releases())
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def recorded_releases() -> tuple[str, ...]:
    """Releases of vLLM whose registry is recorded, oldest first."""
    names = (path.stem for path in _FOLDER.glob("[0-9]*.json"))
    return tuple(sorted(names, key=lambda name: [int(part) for part in name.split(".")]))


def known_architecture(name: str, release: str = _FIRST) -> KnownArchitecture | None:
    """The architecture of that name in a release of vLLM, None where its registry has none.

    Raises:
        NotInCatalogueError: the registry of the release is not recorded.
    """
    row = _recording(release)["architectures"].get(name)
    if row is None:
        return None
    traits = row.get("traits", ())
    return KnownArchitecture(
        name,
        tuple(row["kinds"]),
        row["module"],
        hybrid="is_hybrid" in traits,
        attention_free="is_attention_free" in traits,
        generates="is_text_generation_model" in traits,
    )


def unknown_reason(name: str, release: str = _FIRST) -> str | None:
    """Why a release of vLLM has no class for an architecture, None where it has one.

    Raises:
        NotInCatalogueError: the registry of the release is not recorded.
    """
    recording = _recording(release)
    if name in recording["architectures"]:
        return None
    if last := recording["removed"].get(name):
        return f"vLLM dropped {name}: {last} was the last release with it"
    if plugin := recording["plugins"].get(name):
        return f"vLLM serves {name} by a plugin only ({plugin})"
    return f"{name} is not in the registry of vLLM {release}"
