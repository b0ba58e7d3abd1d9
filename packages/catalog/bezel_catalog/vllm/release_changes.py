"""Differences of the recordings of two vLLM releases: options, variables, endpoints, bodies, metrics, models.

Owns the comparison, as lists of names. Leaves which stacks use them to its callers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_catalog.vllm.options import VllmOption, VllmOptions
    from bezel_catalog.vllm.servers import RecordedServer


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences of one kind, by names.

    Attributes:
        kind: what changed, e.g. "options".
        changed: name -> what of it differs.
    """

    kind: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)

    @property
    def touching(self) -> frozenset[str]:
        """Names of the earlier release that are gone or differ."""
        return frozenset({*self.removed, *self.changed})

    def lines(self) -> Iterator[str]:
        """Yield the lines of a report; none where nothing differs."""
        if self.added:
            yield f"{self.kind}, new: {', '.join(self.added)}"
        if self.removed:
            yield f"{self.kind}, gone: {', '.join(self.removed)}"
        if self.changed:
            yield f"{self.kind}, changed: {'; '.join(f'{name} ({what})' for name, what in self.changed.items())}"


def option_changes(earlier: VllmOptions, later: VllmOptions) -> list[Changes]:
    """Return the differences of options, variables and names that the started server knows."""
    old, new = ({option.name: option for option in recording.options} for recording in (earlier, later))
    options = _by_name("options", old, new)
    both = sorted(old.keys() & new.keys())
    differences = {name: what for name in both if (what := "; ".join(_of_option(old[name], new[name], earlier, later)))}
    variables = {name: kind for name, kind in earlier.variables.items() if later.variables.get(name, kind) != kind}
    names_of_values = [
        _by_name(f"values of {name}", dict.fromkeys(values), dict.fromkeys(later.registered.get(name, ())))
        for name, values in earlier.registered.items()
    ]
    return [
        Changes(
            "options",
            options.added,
            options.removed,
            {name: differences[name] for name in sorted(differences) if differences[name]},
        ),
        Changes(
            "variables",
            *_names(earlier.variables, later.variables),
            dict.fromkeys(sorted(variables), "takes other values"),
        ),
        *names_of_values,
    ]


def server_changes(earlier: RecordedServer, later: RecordedServer) -> list[Changes]:
    """Return the differences of endpoints, bodies, functions of bodies, metrics and architectures."""
    bodies = {
        name: f"fields {_with_signs(model_fields(earlier.models[name]), model_fields(later.models[name]))}"
        for name in sorted(earlier.models.keys() & later.models.keys())
        if model_fields(earlier.models[name]) != model_fields(later.models[name])
    }
    names = _names(earlier.models, later.models)
    return [
        _by_name("endpoints", earlier.document["paths"], later.document["paths"]),
        Changes("bodies", *names, bodies),
        _by_name(
            "functions of bodies", dict.fromkeys(functions(earlier.models)), dict.fromkeys(functions(later.models))
        ),
        _by_name("metrics", earlier.families, later.families),
        _by_name("architectures", dict.fromkeys(earlier.architectures), dict.fromkeys(later.architectures)),
    ]


def functions(models: Any) -> set[str]:
    """Return the names of the functions in recorded schemas, which a server of the release runs on a body."""
    if isinstance(models, list):
        return set().union(*map(functions, models))
    if not isinstance(models, dict):
        return set()
    function = models.get("function")
    named = {str(function["name"])} if isinstance(function, dict) and "name" in function else set()
    return named.union(*map(functions, models.values()))


def model_fields(schema: Any) -> frozenset[str]:
    """Return the names of the fields of a recorded body; of both branches where it has two."""
    if isinstance(schema, list):
        return frozenset().union(*map(model_fields, schema))
    if not isinstance(schema, dict):
        return frozenset()
    if schema.get("type") == "model-fields":
        return frozenset(schema["fields"])
    inner = [schema[key] for key in ("schema", "choices") if key in schema]
    return frozenset().union(*map(model_fields, inner))


def order_of(release: str) -> tuple[int, ...]:
    """Return the place of a release among others; a name that is no release comes last."""
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", release)
    return tuple(map(int, numbers.groups())) if numbers else (1 << 30,)


def _by_name(kind: str, old: Mapping[str, object], new: Mapping[str, object]) -> Changes:
    return Changes(kind, *_names(old, new))


def _names(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(sorted(new.keys() - old.keys())), tuple(sorted(old.keys() - new.keys()))


def _with_signs(old: frozenset[str], new: frozenset[str]) -> str:
    return " ".join([*(f"+{name}" for name in sorted(new - old)), *(f"-{name}" for name in sorted(old - new))])


def _of_option(old: VllmOption, new: VllmOption, earlier: VllmOptions, later: VllmOptions) -> Iterator[str]:
    both = ((old, earlier), (new, later))
    if old.default != new.default:
        yield f"default {old.default!r} -> {new.default!r}"
    if old.kind != new.kind or old.type != new.type:
        yield f"{old.kind} of {old.type} -> {new.kind} of {new.type}"
    if gone := [flag for flag in old.flags if later.find(flag) is None]:
        yield f"no longer {' '.join(gone)}"
    # Words that the parser no longer checks are known to the started server, and listed as its values.
    before, after = (frozenset(each.choices or recording.registered.get(each.name, ())) for each, recording in both)
    if before != after and (old.choices or new.choices):
        yield f"choices {_with_signs(before, after)}"
