"""Planned changes in a form that two previews of the same program and state share, their digest, and differences.

A planned change is its operation, URN, type, the paths of its changed properties, and its new inputs. Left out is what
differs between two previews of the same: generated names, the ids of unknown values, times of the engine, the order of
resources. Inputs are kept as hashes, so that the form can be stored where their values must not be read. A secret
counts as `[secret]`: its value is part of the tree, by which a review is stored as well. Pure.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from bezel.engine.events.values import Change

# Marks of values that a preview cannot know, by their kind (sdk/go/common/resource/plugin/rpc.go in Pulumi's sources).
UNKNOWNS = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
UNKNOWN, GENERATED = "(unknown)", "(generated)"
_DEFAULTS = "__defaults"  # a provider lists here the inputs that it has set by itself, generated names among them
_ENGINES_OWN = "__"
_SUFFIX = r"-?[0-9a-f]{7,8}"
_HASH_LENGTH = 32
# Steps that may be left of a planned change when a run ended in the middle of it.
_REMAINS = {
    "create": {"create", "update", "import"},
    "import": {"create", "update", "import"},
    "update": {"update"},
    "replace": {"replace", "create", "update", "delete"},
    "delete": {"delete"},
}


@dataclass(frozen=True)
class Planned:
    """A planned change. Equal to another one by all its parts.

    Attributes:
        op: The operation.
        urn: URN of the resource.
        type: Its type's token.
        properties: Paths of the changed properties, sorted.
        inputs: Path of each new input -> hash of its value; empty for a deleted resource.
        open: Paths of the inputs that hold an unknown value or a generated name.
    """

    op: str
    urn: str
    type: str
    properties: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    open: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The resource's logical name."""
        return self.urn.rpartition("::")[2]

    def as_json(self) -> dict[str, object]:
        """The parts by their names."""
        parts = {"op": self.op, "urn": self.urn, "type": self.type, "properties": list(self.properties)}
        return {**parts, "inputs": dict(self.inputs), "open": list(self.open)}

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """A planned change from its parts.

        Raises:
            ValueError: They are not those of a planned change.
        """
        try:
            inputs = {str(path): str(value) for path, value in content["inputs"].items()}
            properties, unknown = (tuple(map(str, content[name])) for name in ("properties", "open"))
            op, urn, kind = (str(content[name]) for name in ("op", "urn", "type"))
            return cls(op, urn, kind, properties, inputs, unknown)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"expected a planned change: {error!r}") from None


def planned_changes(changes: Iterable[Change]) -> tuple[Planned, ...]:
    """The changes of a preview in their common form, sorted."""
    listed = list(changes)
    generated = dict(_generated_names(listed))
    # Longer names first: one may be part of another.
    names = sorted(generated, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, names))) if names else None
    planned = []
    for change in listed:
        leaves = {
            path: _common(value, pattern, generated)
            for path, value in _leaves(change.new or {})
            if not path.startswith(_ENGINES_OWN)
        }
        hashes = {path: _hash(value) for path, value in sorted(leaves.items())}
        unknown = tuple(sorted(path for path, value in leaves.items() if _is_open(value)))
        planned.append(Planned(change.op, change.urn, change.type, change.properties, hashes, unknown))
    return tuple(sorted(planned, key=lambda item: (item.urn, item.op)))


def digest(planned: Iterable[Planned]) -> str:
    """The digest of planned changes: equal for two previews of the same, in whatever order they are listed."""
    rows = sorted(json.dumps(item.as_json(), sort_keys=True) for item in planned)
    return f"sha256:{hashlib.sha256(json.dumps(rows).encode()).hexdigest()}"


def changed_outputs(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Names of a stack's outputs that a deploy would change, without those whose new value is not known yet.

    Args:
        old: The outputs of the state; None without a state.
        new: The outputs of a preview; None where the program did not get that far.
    """
    before, after = old or {}, new or {}
    known_names = (
        name for name in {*before, *after} if not UNKNOWNS & {str(leaf) for _, leaf in _leaves(after.get(name))}
    )
    return tuple(sorted(name for name in known_names if new is not None and before.get(name) != after.get(name)))


def difference(reviewed: Iterable[Planned], present: Iterable[Planned]) -> list[str]:
    """Lines that say what is new in the present changes, what is gone, and which property differs; none if equal."""
    before = {(item.urn, item.op): item for item in reviewed}
    after = {(item.urn, item.op): item for item in present}
    lines = [f"new: {_item_text(after[key])}" for key in sorted(after.keys() - before.keys())]
    lines += [f"gone: {_item_text(before[key])}" for key in sorted(before.keys() - after.keys())]
    for key in sorted(before.keys() & after.keys()):
        old, new = before[key], after[key]
        if old == new:
            continue
        paths = {path for path in {*old.inputs, *new.inputs} if old.inputs.get(path) != new.inputs.get(path)}
        paths |= {*old.properties} ^ {*new.properties} | {*old.open} ^ {*new.open}
        lines.append(f"differs: {_item_text(new)}: {', '.join(sorted(paths)) or 'type'}")
    return lines


def is_rest_of(reviewed: Iterable[Planned], remaining: Iterable[Planned]) -> bool:
    """Whether changes are what is left of the reviewed ones after a run that ended in the middle.

    A resource may be done, half replaced, or adopted and then updated; its inputs are those of the review, and what
    was unknown then may be known now. No other resource is changed.
    """
    reviewed_by_urn = {item.urn: item for item in reviewed}
    return all(item.urn in reviewed_by_urn and _is_rest(reviewed_by_urn[item.urn], item) for item in remaining)


def _is_rest(reviewed: Planned, item: Planned) -> bool:
    if item.op not in _REMAINS.get(reviewed.op, ()) or item.type != reviewed.type:
        return False
    if item.op == "delete":
        return True
    flexible = {*reviewed.open, *item.open}
    paths = {*reviewed.inputs, *item.inputs} - flexible
    return all(
        reviewed.inputs.get(path) == item.inputs.get(path)
        for path in paths
        # An unknown list or map has other paths once it is known.
        if not any(path.startswith((f"{start}.", f"{start}[")) for start in flexible)
    )


def _generated_names(changes: Iterable[Change]) -> Iterator[tuple[str, str]]:
    """Each generated name, and what stands for it: the inputs that a provider set, named after the resource."""
    for change in changes:
        inputs = change.new or {}
        for key in inputs.get(_DEFAULTS) or ():
            value = inputs.get(key)
            if not isinstance(value, str) or (change.old is not None and change.old.get(key) == value):
                continue
            # An update keeps the name that the resource has; only a new resource gets one.
            if change.op in ("create", "replace") and re.fullmatch(
                re.escape(change.name) + _SUFFIX, value, re.IGNORECASE
            ):
                yield value, f"{change.name}-{GENERATED}"


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Each plain value with its path; an empty list or map is a value too."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            # Quoted where it could be taken for another path.
            step = str(key) if re.fullmatch(r"[\w/-]+", str(key)) else json.dumps(str(key))
            yield from _leaves(item, f"{path}.{step}" if path else step)
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}[{number}]")
    else:
        yield path, value


def _common(value: object, pattern: re.Pattern[str] | None, generated: Mapping[str, str]) -> object:
    if not isinstance(value, str):
        return value
    if value in UNKNOWNS:
        return UNKNOWN
    return pattern.sub(lambda match: generated[match.group()], value) if pattern else value


def _is_open(value: object) -> bool:
    return isinstance(value, str) and (value == UNKNOWN or GENERATED in value)


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_HASH_LENGTH]


def _item_text(item: Planned) -> str:
    return f"{item.op} {item.name} ({item.type})"
