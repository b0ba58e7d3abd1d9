"""Options of `vllm serve`: what the recorded parser and classes accept, what the plan owns, which are risks."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bezel.operations.explain.entry import Entry, facts, list_text
from bezel.planner.base.problems import setting
from bezel.planner.vllm.argument_conflicts import NEEDS
from bezel.planner.vllm.option_checks import OWNED
from bezel_catalog import (
    VllmOption,
    VllmOptions,
    removed_options,
    unjudged_risks,
    vllm_options,
    vllm_risks,
    vllm_versions,
)

_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "json": "a map, written as keys and values",
    "human-int": "a whole number such as 4096 or 4K",
    "human-int-or-auto": "a whole number such as 4096 or 4K, or auto",
    "any": "a value that the recording does not type",
}
_KINDS = {
    "switch": "true or false",
    "switch-pair": "true or false",
    "values": "one or more: {}",
    "append": "{}, any number of times",
    "optional-value": "{}, or no value",
    "value": "{}",
}
_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
_MOST_KEYS = 40


def names(version: str) -> list[str]:
    """Options of a release, removed ones, and dotted keys that are risks."""
    options = vllm_options(version)
    risky = [name for name, risk in vllm_risks().items() if risk.kind == "option"]
    return [*options.names(), *removed_options(), *(name for name in risky if "." in name)]


def entries(subject: str, version: str) -> list[Entry]:
    """What the recording of a release says about an option, in any of its spellings.

    Raises:
        NotInCatalogueError: The release was not recorded.
    """
    options = vllm_options(version)
    base, _, inner = subject.lstrip("-").replace("_", "-").partition(".")
    flag = subject if subject.startswith("-") and not inner else f"--{base}"
    match = options.find(flag) or options.find(f"--{base}")
    if match is not None:
        keys = subject.partition(".")[2]  # keys of a map keep their underscores
        return [entry] if (entry := _key(match[0], keys, options) if keys else _option(match[0], options)) else []
    if base in removed_options():
        why = f"vLLM {version} no longer has it and exits with code 2: {removed_options()[base]}."
        return [
            Entry(
                kind="vLLM option",
                name=f"--{base}",
                meaning="an option of older releases",
                facts=(),
                why=(why,),
                source=f"tried on the parsers of {' and '.join(_releases())}",
            )
        ]
    return []


def _option(option: VllmOption, options: VllmOptions) -> Entry:
    schema = options.values.get(option.dest, {})
    choices = option.choices or options.registered.get(option.name, ()) or tuple(_words(schema))
    taken = _KINDS[option.kind].format(_TYPES[option.type])
    rows = {
        "takes": "one of the choices"
        if choices and option.type in ("str", "any") and option.kind == "value"
        else taken,
        "choices": list_text(choices),
        "bounds": _bounds(schema),
        "default": _default_text(option.default),
        "flags": list_text(option.flags),
        "keys": list_text(sorted(_keys(schema)), _MOST_KEYS),
        "written as": f"{setting('vllm')}: {{{option.name}: VALUE}}",
        "needs": NEEDS.get(option.name),
        "releases": list_text(version for version in _releases() if vllm_options(version).find(f"--{option.name}")),
    }
    return Entry(
        kind="vLLM option",
        name=f"--{option.name}",
        meaning="deprecated by vLLM" if option.deprecated else "",
        facts=facts(rows),
        why=tuple(_reasons(option.name, options)),
        source=_source(options),
    )


def _key(option: VllmOption, path: str, options: VllmOptions) -> Entry | None:
    """A key of an option that is a map; None where the recording does not have it."""
    schema: Mapping[str, Any] = options.values.get(option.dest, {})
    for part in path.split("."):
        keys = _keys(schema)
        if part not in keys:
            return None
        schema = keys[part]
    name = f"{option.name}.{path}"
    found_facts = {
        "takes": list_text(dict.fromkeys(str(kind) for kind in _types(schema))),
        "choices": list_text(_words(schema)),
        "bounds": _bounds(schema),
        "written as": f"{setting('vllm')}: {{{option.name}: {{{path}: VALUE}}}}",
    }
    return Entry(
        kind="vLLM option",
        name=f"--{name}",
        meaning=f"a key of the map --{option.name}",
        facts=facts(found_facts),
        why=tuple(_reasons(name, options)),
        source=_source(options),
    )


def _reasons(name: str, options: VllmOptions) -> Iterable[str]:
    if name in OWNED:
        consequence, repair = OWNED[name]
        yield f"the plan refuses it: {consequence} Repair: {repair}"
    if name == "api-key":
        yield "the plan refuses it: callers are admitted by their identity, and vLLM's key would take its header."
    risks = {**vllm_risks(), **unjudged_risks(options)}
    for risk in risks.values():
        if risk.kind == "option" and (risk.name == name or risk.name.startswith(f"{name}.")):
            when = "set" if risk.when == "set" else "on"
            only = f" to {list_text(risk.only)}" if risk.only else ""
            yield (
                f"a risk if {risk.name} is {when}{only}: {risk.consequence}; refused unless accepted: "
                f"`{setting('access')}: {{accepted_risks: [{risk.name}]}}`."
            )


def _branches(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(schema.get("anyOf", [schema])) if schema else []


def _words(schema: Mapping[str, Any]) -> list[str]:
    return [
        str(word) for part in _branches(schema) for word in part.get("enum", [part["const"]] if "const" in part else [])
    ]


def _keys(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {key: value for part in _branches(schema) for key, value in (part.get("properties") or {}).items()}


def _types(schema: Mapping[str, Any]) -> list[str]:
    return [str(part.get("type", "a value that the recording does not type")) for part in _branches(schema)]


def _bounds(schema: Mapping[str, Any]) -> str | None:
    return list_text(
        f"{comparison} {part[key]:g}"
        for part in _branches(schema)
        for key, comparison in _BOUNDS.items()
        if key in part
    )


def _default_text(default: object) -> str | None:
    return None if default is None else default if isinstance(default, str) else json.dumps(default)


def _releases() -> tuple[str, ...]:
    return vllm_versions()


def _source(options: VllmOptions) -> str:
    return f"vLLM {options.version}, {options.source}, {options.as_of}"
