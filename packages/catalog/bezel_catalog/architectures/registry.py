"""Registry of a vLLM release: its architectures, those of transformers without a class in vLLM, those it dropped.

Recorded by tools/vllm/recorders/architectures.py into data/vllm/architectures/RELEASE.json. The order of the look-ups
is that of vLLM's `vllm/model_executor/models/registry.py` (inspect_model_cls): its own classes, one of another ending
that is converted, transformers' own class.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

from bezel_catalog.loader import DATA, NotInCatalogueError

# Names of a method in a configuration that vLLM takes for another.
_METHODS = {"auto-round": "inc", "mxfp4": "gpt-oss-mxfp4"}
# Classes of transformers that vLLM takes, and whose layers it then does not find ("does not dispatch through ...").
_LAYERS_NOT_FOUND = ("DiffLlama", "DistilBert")
# Endings of models that generate. They are not converted, so transformers' class comes first.
_GENERATING = ("ForCausalLM", "ForConditionalGeneration", "ChatModel", "LMHeadModel")
_FOLDER = DATA / "vllm" / "architectures"


@dataclass(frozen=True, slots=True)
class KnownArchitecture:
    """An architecture that a release serves.

    `kinds` are the tables of the registry that it stands in: text, multimodal, embedding, classification,
    token-classification, reward, late-interaction, draft, transformers. `module` is where its class is defined. `base`
    is the architecture whose class serves it where it has none of its own: the same by another ending, or empty where
    transformers' class does.
    """

    name: str
    kinds: tuple[str, ...]
    module: str
    base: str
    hybrid: bool = False
    attention_free: bool = False
    generates: bool = False
    pools: bool = False


@functools.cache
def _recording(release: str) -> dict[str, Any]:
    path = _FOLDER / f"{release}.json"
    if not path.is_file():
        raise NotInCatalogueError("list of architectures of vLLM", release, recorded_releases())
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


@functools.cache
def recorded_releases() -> tuple[str, ...]:
    """Releases of vLLM whose registry is recorded, oldest first."""
    names = (path.stem for path in _FOLDER.glob("[0-9]*.json"))
    return tuple(sorted(names, key=lambda name: [int(part) for part in name.split(".")]))


def recorded_architectures(release: str) -> dict[str, tuple[str, ...]]:
    """Architectures of a release with the tables of its registry that each stands in.

    Raises:
        NotInCatalogueError: the registry of the release is not recorded.
    """
    return {name: tuple(row["kinds"]) for name, row in _recording(release)["architectures"].items()}


def known_architecture(name: str, release: str) -> KnownArchitecture | None:
    """The architecture of that name in a release of vLLM, None where the release serves none of this name.

    Raises:
        NotInCatalogueError: the registry of the release is not recorded.
    """
    recording = _recording(release)
    base = _base(name, recording)
    if base is None:
        return None
    if not base:
        return KnownArchitecture(name, ("transformers",), "transformers", "")
    row = recording["architectures"][base]
    recorded = row.get("traits")
    traits = recorded or ()
    return KnownArchitecture(
        name,
        tuple(row["kinds"]),
        row["module"],
        base,
        hybrid="is_hybrid" in traits,
        attention_free="is_attention_free" in traits,
        generates="is_text_generation_model" in traits,
        # A class that was not imported says nothing of itself; the tables of the registry do.
        pools="is_pooling_model" in traits or (recorded is None and row["kinds"] == ["embedding"]),
    )


def _base(name: str, recording: dict[str, Any]) -> str | None:
    """The architecture whose class serves this one; empty where transformers' class does, None where none does."""
    if name in recording["architectures"]:
        return name
    base = _base_of_another_ending(name, recording)
    fallback = name in recording["transformers"] and not name.startswith(_LAYERS_NOT_FOUND)
    if fallback and (base is None or name.endswith(_GENERATING)):
        return ""
    return base


def _base_of_another_ending(name: str, recording: dict[str, Any]) -> str | None:
    """The architecture of another ending that vLLM converts, None where there is none."""
    suffixes = recording["suffixes"]
    ending = next((suffix for suffix in suffixes if name.endswith(suffix)), None)
    if ending is None:
        return None
    stem = name.removesuffix(ending)
    return next((stem + suffix for suffix in suffixes if stem + suffix in recording["architectures"]), None)


def refusal(name: str, release: str) -> str | None:
    """Why a release of vLLM serves no model of an architecture, None where it serves it.

    Raises:
        NotInCatalogueError: the registry of the release is not recorded.
    """
    recording = _recording(release)
    if _base(name, recording) is not None:
        return None
    if last := recording["removed"].get(name):
        return f"vLLM {last} was the last release with {name}"
    if plugin := recording["plugins"].get(name):
        return f"vLLM serves {name} by a plugin only ({plugin})"
    return f"{name} is not in the registry of vLLM {release}, and transformers' own class cannot stand in for it"


@functools.cache
def _classes_without_adapters() -> dict[str, list[str]]:
    content: dict[str, list[str]] = json.loads((_FOLDER / "adapters.json").read_text(encoding="utf-8"))
    return content


def takes_adapters(name: str, release: str) -> bool:
    """Whether the class of an architecture takes LoRA adapters; True where no class of vLLM's own serves it.

    Recorded by tools/vllm/recorders/adapters.py. vLLM's class for transformers' own models takes them.

    Raises:
        NotInCatalogueError: the registry of the release is not recorded.
    """
    recording = _recording(release)
    base = _base(name, recording)
    return not base or recording["architectures"][base]["class"] not in _classes_without_adapters().get(release, ())


def least_capability(method: str, release: str) -> float | None:
    """Least compute capability of a GPU for a method of quantisation, e.g. 7.5; None where its class names none.

    Raises:
        LookupError: the release has no such method.
        NotInCatalogueError: the registry of the release is not recorded.
    """
    rows = {name.replace("_", "-"): least for name, least in _recording(release)["quantisations"].items()}
    least = rows[_METHODS.get(method, method)]
    return None if least is None else least / 10


def known_quantisations(release: str) -> tuple[str, ...]:
    """Methods of quantisation that a release loads.

    Raises:
        NotInCatalogueError: the registry of the release is not recorded.
    """
    return tuple(_recording(release)["quantisations"])
