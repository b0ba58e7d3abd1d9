"""Variables and options of vLLM that are dangerous to set, with what each would mean, and those that nobody has judged.

Whatever takes free text may name code that the server imports or a file that it opens: each is a row of risks.toml, or
of judged.toml where it is none. Owns finding them in a recording. Leaves what a stack sets to the planner.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.catalog.loader import make, read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.catalog.vllm.options import VllmOption, VllmOptions
    from bezel.catalog.vllm.variables import Variable

_NO_TEXT = ("int", "float", "human-int", "human-int-or-auto")
_UNKNOWN = (
    "nobody has looked at what this vLLM does with the text: it may name code that the server imports, or a file that "
    "it opens"
)


@dataclass(frozen=True, slots=True)
class Risk:
    """One dangerous setting: of the kind "variable", or "option" without dashes in front, a part of a map behind a dot.

    `when`: "on" where only switching it on is dangerous, "set" where any value but an empty one is; `unless` are values
    that are not, `only` the values that are where not all of them are.
    """

    name: str
    kind: str
    when: str
    consequence: str
    unless: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


@functools.cache
def vllm_risks() -> dict[str, Risk]:
    """All of them, by name."""
    return {
        name: make(Risk, f"vllm/risks.toml: {name}", {**row, "kind": kind}, name=name)
        for kind, rows in read_toml("vllm/risks.toml").items()
        for name, row in rows.items()
    }


@functools.cache
def judged() -> frozenset[str]:
    """Options, parts of them and variables that take free text and are no risk."""
    return frozenset(name for names in read_toml("vllm/judged.toml").values() for name in names)


def unjudged(options: VllmOptions) -> dict[str, Risk]:
    """What takes free text in a recording and is neither a risk nor judged to be none: of a build that is newer.

    Args:
        options: of the recording.
    """
    return {
        name: Risk(name, kind, "set", _UNKNOWN)
        for kind, names in (("option", option_texts(options)), ("variable", variable_texts(options.variables)))
        for name in names
        if name not in judged() and not _is_risk(name)
    }


def _is_risk(name: str) -> bool:
    """Whether it, or what it is a part of, is one of the risks."""
    parts = name.split(".")
    return any(".".join(parts[: end + 1]) in vllm_risks() for end in range(len(parts)))


def option_texts(options: VllmOptions) -> tuple[str, ...]:
    """Options that take free text, and parts of the maps that others take, behind a dot."""
    found: dict[str, None] = {}
    for option in options.options:
        if _is_open(option, options):
            schema = options.values.get(option.dest)
            found |= dict.fromkeys(_texts(schema, option.name) if schema else [option.name])
    return tuple(found)


def variable_texts(variables: Mapping[str, Variable]) -> tuple[str, ...]:
    """Variables that take free text."""
    return tuple(name for name, variable in variables.items() if variable.kind in ("text", "json"))


def _is_open(option: VllmOption, options: VllmOptions) -> bool:
    words = option.choices or options.registered.get(option.name)
    return not words and option.type not in _NO_TEXT and option.kind not in ("switch", "switch-pair")


def _texts(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """The places of a value that may be any text: those of no kind, and maps with keys of any name, are such."""
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
