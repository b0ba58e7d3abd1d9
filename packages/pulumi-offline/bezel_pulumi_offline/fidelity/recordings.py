"""Recordings of the published provider, read from a folder and checked before any is compared.

The folder holds, each part optional:

- `state/MODULE.CLASS.NAME.json`: `{"name", "calls": [{"phase", "rpc", "request", "response"}]}`, the engine's calls for
  one resource; a phase is create, refresh, update, destroy or preview.
- `http/MODULE.CLASS.OPERATION.lro-done.json`: `{"exchanges": [{"method", "path", "query", "status", "answer"}]}`, with
  `body` where one was sent; the operation is create, read, update or delete.
- `provider/METHOD.PHASE.json`: `{"request", "response", "errors"}` of a call before there are resources, and in
  `Diff.PHASE.json` a list of `{"urn", "response"}`, the diffs of an unchanged preview.
- `faults/NAME.json`: `{"http": [exchange], "rpc": [call]}` of a refused create, a failed operation or an import.

`{BASE}` stands for the address of Google's APIs.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bezel_base.errors import Problem, WrongValueError
from bezel_pulumi_offline.resources import TYPES

Json = dict[str, Any]
CALLS = ("Check", "Diff", "Create", "Read", "Update", "Delete")
PROVIDER_CALLS = ("Handshake", "GetPluginInfo", "CheckConfig", "Configure", "DiffConfig")
_EXCHANGE = ("method", "path", "query", "status", "answer")
_PARTS = ("state", "http", "provider", "faults")
_PLACE = {"project": "demo-project", "region": "us-central1", "zone": "us-east5-a"}


class RecordingsError(WrongValueError):
    """The folder has no recordings, or some that cannot be compared."""


@dataclass(frozen=True)
class Recordings:
    """What was recorded.

    Attributes:
        states: Short name of a type -> the recorded resources of it; each type of the stand-in is a key.
        exchanges: (short name of a type, operation) -> exchanges with Google.
        provider: (method, phase) -> a call before there are resources, or the diffs of an unchanged preview.
        faults: Name -> a refused create, a failed operation or an import.
        others: Short names of recorded types that the stand-in does not have.
    """

    states: Mapping[str, list[Json]]
    exchanges: Mapping[tuple[str, str], list[Json]]
    provider: Mapping[tuple[str, str], Any]
    faults: Mapping[str, Json]
    others: frozenset[str]

    @property
    def place(self) -> dict[str, str]:
        """Project, region and zone that the provider was configured with."""
        configured = self.provider.get(("Configure", "create"), {}).get("request", {}).get("args", {})
        return _PLACE | {name: configured[name] for name in _PLACE if isinstance(configured.get(name), str)}


def short(token: str) -> str:
    """cloudrunv2.Service for gcp:cloudrunv2/service:Service."""
    return re.sub(r"^gcp:(\w+)/\w+:(\w+)$", r"\1.\2", token)


def read_recordings(folder: Path) -> Recordings:
    """Read and check all recordings of a folder.

    Raises:
        RecordingsError: There are none, or some cannot be read; it holds a problem for each file.
    """
    files = {part: sorted((folder / part).glob("*.json")) for part in _PARTS}
    if not any(files.values()):
        consequence = f"it holds no recordings ({', '.join(f'{part}/*.json' for part in _PARTS)}): nothing to compare."
        raise RecordingsError(Problem("RECORDINGS", str(folder), consequence, "name the folder that holds these."))
    problems: list[Problem] = []

    def read(path: Path) -> Any:
        try:
            # The attribution label of the provider behind a bridge is read as the published plugin's.
            text = path.read_text(encoding="utf-8")
            content = json.loads(text.replace("goog-terraform-provisioned", "goog-pulumi-provisioned"))
            lacks = next(_lacks(path, content), None)
        except (OSError, ValueError, RecursionError) as error:
            content, lacks = None, f"it cannot be read as JSON: {error}"
        if lacks:
            repair = "record it again, or move it out of the folder."
            problems.append(Problem(f"{path.parent.name}/{path.name}", None, f"{lacks}.", repair))
        return content

    exchanges, states = _by_operation(files["http"], read), {short(token): list[Json]() for token in TYPES}
    others = set[str]()
    for path in files["state"]:
        name = ".".join(path.name.split(".")[:2])
        if name in states:
            states[name].append(read(path))
        else:
            others.add(name)
    provider = {(method, phase): read(path) for path in files["provider"] for method, phase in [_method(path)]}
    faults = {path.stem: read(path) for path in files["faults"]}
    if problems:
        raise RecordingsError(*problems, title=f"The recordings of {folder} cannot be compared")
    return Recordings(states, exchanges, provider, faults, frozenset(others))


def _by_operation(paths: list[Path], read: Any) -> dict[tuple[str, str], list[Json]]:
    by_operation = {}
    for path in paths:
        if match := re.fullmatch(r"(\w+\.\w+)\.(create|read|update|delete)\.lro-done\.json", path.name):
            content = read(path)
            by_operation[match[1], match[2]] = content.get("exchanges", []) if isinstance(content, dict) else []
    return by_operation


def _method(path: Path) -> tuple[str, str]:
    method, _, phase = path.stem.partition(".")
    return method, phase


def _lacks(path: Path, content: Any) -> Iterator[str]:
    """What a recording lacks, by the part that its file is in."""
    if path.parent.name == "provider" and _method(path)[0] == "Diff":
        yield from _each("the list", content, ("urn", "response"))
        return
    if not isinstance(content, dict):
        yield f"expected an object, got {type(content).__name__}"
        return
    match path.parent.name:
        case "state":
            yield from _without("the recording", content, ("name", "calls"))
            yield from _each("calls", content["calls"], ("phase", "rpc", "request", "response"))
            yield from _unknown_calls(content["calls"], CALLS)
        case "http":
            yield from _without("the recording", content, ("exchanges",))
            yield from _each("exchanges", content["exchanges"], _EXCHANGE)
        case "provider":
            yield from _without("the recording", content, ("request", "response", "errors"))
        case _:
            for key in ("rpc", "rpc_failed_update", "rpc_next_up"):
                yield from _each(key, content.get(key, []), ("rpc", "response"))
                for index, call in enumerate(content.get(key, [])):
                    if "urn" not in call and "urn" not in call.get("request", {}):
                        yield f"{key}[{index}] has no urn"
                yield from _unknown_calls(content.get(key, []), CALLS)
            yield from _each("http", content.get("http", []), _EXCHANGE)


def _without(what: str, item: Json, keys: Collection[str]) -> Iterator[str]:
    if missing := [key for key in keys if key not in item]:
        yield f"{what} has no {', '.join(missing)}"


def _each(what: str, items: Any, keys: Collection[str]) -> Iterator[str]:
    if not isinstance(items, list):
        yield f"expected {what} to be a list, got {type(items).__name__}"
        return
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            yield f"expected {what}[{index}] to be an object, got {type(item).__name__}"
        else:
            yield from _without(f"{what}[{index}]", item, keys)


def _unknown_calls(items: list[Json], calls: Collection[str]) -> Iterator[str]:
    for index, item in enumerate(items):
        if item["rpc"] not in calls:
            yield f"the engine has no call {item['rpc']!r} ({index}): expected {', '.join(calls)}"
