"""Keys of a stack's file that a deploy changes, old -> new, in the words of the file. Pure.

The old values are those of the last deploy, which a stack keeps among its outputs; a stack that an older version
deployed has none, and no change of a setting is known. Leaves out what follows from them (`planned_changes`).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from bezel.engine.state.exported import State, resources_of
from bezel.engine.state.folder import STACK
from bezel.planner.base.settings import Settings
from bezel_base.errors import NOT_SET, NOT_SHOWN, format_value
from bezel_base.text.redaction import is_secret
from bezel_catalog.quantities import parse_duration

OUTPUT = "settings"
"""Output of a stack that holds the settings it was deployed with."""
_LONGEST = 60
_SECRETS = "secrets"


@dataclass(frozen=True)
class SettingChange:
    """A changed key, e.g. `scaling.max_instances`, with its old and its new value as text."""

    key: str
    old: str
    new: str

    def as_json(self) -> dict[str, str]:
        """The parts by their names."""
        return {"key": self.key, "old": self.old, "new": self.new}

    def text(self) -> str:
        """The change as a line."""
        return f"{self.key}: {self.old} -> {self.new}"


def deployed_settings(state: State | None) -> Mapping[str, Any] | None:
    """The settings of the last deploy; None where the state records none."""
    for resource in resources_of(state):
        if resource.get("type") == STACK:
            settings = (resource.get("outputs") or {}).get(OUTPUT)
            return settings if isinstance(settings, Mapping) else None
    return None


def setting_changes(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> tuple[SettingChange, ...]:
    """The changed keys, in the order of the new settings, then those that are gone.

    A key that one of them does not set has its default.

    Args:
        old: Settings of the last deploy, by key without namespace; None where they are not known.
        new: Settings of the stack's file, defaults of Pulumi.yaml included.
    """
    if old is None:
        return ()
    before, after = {**_defaults(), **dict(_leaves(old))}, {**_defaults(), **dict(_leaves(new))}
    keys = dict.fromkeys(key for key, _ in (*_leaves(new), *_leaves(old)))
    return tuple(
        SettingChange(key, _value(key, before), _value(key, after))
        for key in keys
        if not _is_same(before.get(key), after.get(key))
    )


@cache
def _defaults() -> Mapping[str, str]:
    """The defaults of all keys that have one, as a stack's file writes them."""
    settings = Settings(model="", accelerator="", region="").model_dump(mode="json", exclude_none=True)
    required = ("model", "accelerator", "region")
    return {key: value for key, value in _leaves(settings) if key not in required}


def _leaves(section: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Each plain value and each list, as text: the engine passes a number of the top level as text."""
    for key, value in section.items():
        if isinstance(value, Mapping):  # an empty one sets nothing
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _is_same(old: str | None, new: str | None) -> bool:
    """Whether two values mean the same: numbers and durations may be written in several ways."""
    if old == new or old is None or new is None:
        return old == new
    pairs = [(reading(old), reading(new)) for reading in (_number, parse_duration)]
    return any(first is not None and first == second for first, second in pairs)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _value(key: str, leaves: Mapping[str, str]) -> str:
    if key not in leaves:
        return NOT_SET
    # The value of a key below `secrets` should be a secret's name; it may be the secret.
    is_hidden = key.partition(".")[0] == _SECRETS or is_secret(key.rpartition(".")[2], leaves[key])
    return NOT_SHOWN if is_hidden else format_value(leaves[key], _LONGEST)
