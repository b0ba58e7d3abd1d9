"""Risks: dangerous variables and options of vLLM with their consequences, and settings that were not yet reviewed.

A setting that takes free text may name code that the server imports or a file that it opens: each is a row of
risks.toml, or of judged.toml if it is no risk. Owns finding such settings in a recording. Leaves the settings of a
stack to the planner.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_catalog.loader import make, read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_catalog.vllm.options import Variable, VllmOption, VllmOptions

_NO_TEXT = ("int", "float", "human-int", "human-int-or-auto")
_UNKNOWN = "its use of the text was not reviewed: it may name code that the server imports or a file that it opens"


@dataclass(frozen=True, slots=True)
class Risk:
    """One dangerous setting: a "variable" or an "option" (without dashes in front; a key of a map follows a dot).

    `when`: "on" where only switching it on is dangerous, "set" where any value but an empty one is. `unless` are the
    harmless values; `only`, where given, are the only dangerous ones.
    """

    name: str
    kind: str
    when: str
    consequence: str
    unless: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


@functools.cache
def vllm_risks() -> dict[str, Risk]:
    """Return all risks by name."""
    return {
        name: make(Risk, f"vllm/risks.toml: {name}", {**row, "kind": kind}, name=name)
        for kind, rows in read_toml("vllm/risks.toml").items()
        for name, row in rows.items()
    }


@functools.cache
def judged_names() -> frozenset[str]:
    """Return the options, keys of options and variables that take free text and were reviewed as harmless."""
    return frozenset(name for names in read_toml("vllm/judged.toml").values() for name in names)


@functools.lru_cache(maxsize=4)
def unjudged_risks(options: VllmOptions) -> Mapping[str, Risk]:
    """Return, as risks, the settings with free text that were not reviewed, as a newer build may have.

    Args:
        options: the options of a recording.
    """
    return {
        name: Risk(name, kind, "set", _UNKNOWN)
        for kind, names in (("option", option_texts(options)), ("variable", variable_texts(options.variables)))
        for name in names
        if name not in judged_names() and not _is_risk(name)
    }


def _is_risk(name: str) -> bool:
    """Whether the setting, or the map of which it is a key, is a risk."""
    parts = name.split(".")
    return any(".".join(parts[: end + 1]) in vllm_risks() for end in range(len(parts)))


def option_texts(options: VllmOptions) -> tuple[str, ...]:
    """Return the options that take free text, and the keys of map options that do, after a dot."""
    texts: dict[str, None] = {}
    for option in options.options:
        if _is_open(option, options):
            schema = options.values.get(option.dest)
            texts |= dict.fromkeys(_texts(schema, option.name) if schema else [option.name])
    return tuple(texts)


def variable_texts(variables: Mapping[str, Variable]) -> tuple[str, ...]:
    """Return the variables that take free text."""
    return tuple(name for name, variable in variables.items() if variable.kind in ("text", "json"))


def _is_open(option: VllmOption, options: VllmOptions) -> bool:
    choices = option.choices or options.registered.get(option.name)
    return not choices and option.type not in _NO_TEXT and option.kind not in ("switch", "switch-pair")


def _texts(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the paths of a value that may be any text, including untyped values and maps with free keys."""
    kind, others = schema.get("type"), schema.get("additionalProperties", True)
    if "anyOf" in schema:
        for branch in schema["anyOf"]:
            yield from _texts(branch, path)
    elif "enum" in schema or "const" in schema:
        return
    elif kind == "array":
        yield from _texts(schema.get("items") or {}, path)
    elif kind == "object" and "properties" in schema:
        for key, part in schema["properties"].items():
            yield from _texts(part, f"{path}.{key}")
    elif kind == "object" and isinstance(others, dict):
        yield from _texts(others, path)
    elif kind in (None, "string", "object"):
        yield path
