"""Options and environment variables of vLLM releases, as its parser and its readers declare them.

Owns the reading of data/vllm/<version>.json and tpu-inference's variables, and the look-up of an option by any of its
spellings. Leaves checks of values and combinations to its callers.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bezel_catalog.loader import DATA, NotInCatalogueError, read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORDINGS = DATA / "vllm"

Kind = Literal["value", "values", "append", "optional-value", "switch", "switch-pair"]
VariableKind = Literal["text", "int", "float", "json", "switch", "choice"]
Type = Literal["int", "float", "str", "json", "human-int", "human-int-or-auto", "any"]

# The keys are the parser's own converters. `_optional_type` also takes "None" and hides the type behind it: such an
# option has the type of its field, or the type known from its meaning, or "any".
_OPTIONAL = "_optional_type"
_TYPES: dict[str, Type] = {
    "int": "int",
    "float": "float",
    "str": "str",
    "human_readable_int": "human-int",
    "human_readable_int_or_auto": "human-int-or-auto",
    "loads": "json",
    "parse_dataclass": "json",
    "_parse_type": "json",
}
_FIELD_TYPES: dict[str, Type] = {"integer": "int", "number": "float", "object": "json"}
_HIDDEN_MAPS = ("_config", "_kwargs", "_loras")
_HIDDEN: dict[str, Type] = {
    "grpc_port": "int",
    "kv_cache_memory_bytes": "human-int",
    "max_log_len": "int",
    "max_num_queued_tokens": "human-int",
    "max_num_scheduled_tokens": "human-int",
}


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable.

    `on` and `off` are the words that switch it on and off; any other word is refused where it is `strict` (it reads a
    number), else silently read as one of the two. `choices` are the words of a choice, in any case where `any_case`,
    several of them separated by commas where `listed`.
    """

    name: str
    kind: VariableKind
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    strict: bool = False
    choices: tuple[str, ...] = ()
    any_case: bool = False
    listed: bool = False


@dataclass(frozen=True, slots=True)
class RecordedVariables:
    """The variables of one release of tpu-inference."""

    version: str
    as_of: str
    source: str
    variables: Mapping[str, Variable]


@dataclass(frozen=True, slots=True)
class VllmOption:
    """One option. `flags` are its spellings as the parser lists them, the first long one being its name.

    `kind`: "switch" takes no value, "switch-pair" also has a negation, "value" takes one value, "values" one or more,
    "append" may be repeated, "optional-value" takes a value or none. `choices` is empty where the parser takes any
    value. `default` is None also where the recorded default is an object of vLLM's own. `any_case`: the parser takes
    the choices in capitals too. `optional`: the parser reads an empty text and "None" as no value.
    """

    dest: str
    flags: tuple[str, ...]
    kind: Kind
    type: Type
    choices: tuple[str, ...]
    default: object
    deprecated: bool
    any_case: bool = False
    optional: bool = False

    @property
    def name(self) -> str:
        """The option's name without dashes in front, e.g. max-model-len."""
        return self.flags[0].removeprefix("--")

    @property
    def negation(self) -> str | None:
        """The flag that switches a switch-pair off."""
        return self.flags[1] if self.kind == "switch-pair" else None


@dataclass(frozen=True, slots=True, eq=False)
class VllmOptions:
    """The option list of one release, equal to itself alone: what is concluded from it can be cached.

    `registered` holds, for options whose parser takes any string, the values that the started server knows, `values`
    the JSON schemas of fields in vLLM's configuration classes, by the option's `dest`. Both `variables` and `values`
    are empty where a recording has none.
    """

    version: str
    as_of: str
    source: str
    options: tuple[VllmOption, ...]
    registered: dict[str, tuple[str, ...]]
    by_flag: dict[str, tuple[VllmOption, bool]]
    variables: Mapping[str, Variable]
    values: Mapping[str, Mapping[str, Any]]

    def find(self, flag: str) -> tuple[VllmOption, bool] | None:
        """Return the option of a flag and whether the flag negates it; dashes and underscores are equal to vLLM.

        Args:
            flag: with its dashes, e.g. `--max_model_len` or `-tp`; without a value or a dotted key.
        """
        return self.by_flag.get(flag if not flag.startswith("--") else "--" + flag[2:].replace("_", "-"))

    def names(self) -> tuple[str, ...]:
        """Return the names of all options, without dashes in front."""
        return tuple(option.name for option in self.options)


def vllm_versions() -> tuple[str, ...]:
    """Return the recorded releases and the recordings of other builds, sorted by name."""
    return tuple(sorted(path.stem for path in RECORDINGS.glob("*.json")))


@functools.cache
def vllm_options(version: str) -> VllmOptions:
    """Return the option list of a release such as "0.32.0".

    Raises:
        NotInCatalogueError: the release was not recorded.
    """
    if version not in vllm_versions():
        raise NotInCatalogueError("vLLM release", version, vllm_versions())
    return read_options(version, json.loads((RECORDINGS / f"{version}.json").read_text(encoding="utf-8")))


def read_options(version: str, data: Mapping[str, Any]) -> VllmOptions:
    """Return the option list of a recording."""
    values: Mapping[str, Mapping[str, Any]] = data.get("values", {})
    options = tuple(
        VllmOption(
            dest=row["dest"],
            flags=tuple(row["flags"]),
            kind=row["kind"],
            type=_type(row["dest"], row["kind"], row.get("type", ""), values.get(row["dest"], {})),
            choices=tuple(row.get("choices", ())),
            default=row.get("default"),
            deprecated=row.get("deprecated", False),
            any_case=row.get("any_case", False),
            optional=row.get("type") == _OPTIONAL,
        )
        for row in data["options"]
    )
    registered = {name: tuple(values) for name, values in data["registered_values"].items()}
    return VllmOptions(
        version,
        data["as_of"],
        data["source"],
        options,
        registered,
        _by_flag(options),
        read_variables(data.get("variables", {})),
        values,
    )


@functools.cache
def removed_options() -> dict[str, str]:
    """Return the options of older releases that the recorded parsers refuse, with the replacement of each."""
    return {name: row["instead"] for name, row in read_toml("vllm/removed.toml").items()}


def _type(dest: str, kind: Kind, converter: str, field: Mapping[str, Any]) -> Type:
    if converter != _OPTIONAL:
        return _TYPES.get(converter, "any")
    kinds = {branch.get("type") for branch in field.get("anyOf", [field])} - {"null"}
    if dest in _HIDDEN:
        return _HIDDEN[dest]
    if len(kinds) == 1 and kinds <= _FIELD_TYPES.keys():
        return _FIELD_TYPES[kinds.pop()]
    return "json" if kind == "value" and dest.endswith(_HIDDEN_MAPS) else "any"


def _by_flag(options: tuple[VllmOption, ...]) -> dict[str, tuple[VllmOption, bool]]:
    # Releases that list --disable-x as the negation of --enable-x still take --no-enable-x.
    implied = {f"--no-{option.name}": (option, True) for option in options if option.kind == "switch-pair"}
    return implied | {flag: (option, flag == option.negation) for option in options for flag in option.flags}


def read_variables(recorded: Mapping[str, Any]) -> dict[str, Variable]:
    """Return the variables of a recording, by name."""
    return {name: _variable(name, kind) for name, kind in recorded.items()}


@functools.cache
def tpu_variables() -> RecordedVariables:
    """Return the variables that tpu-inference reads itself; vLLM does not know them."""
    data = json.loads((DATA / "tpu_inference.json").read_text(encoding="utf-8"))
    return RecordedVariables(data["version"], data["as_of"], data["source"], read_variables(data["variables"]))


def _variable(name: str, kind: Any) -> Variable:
    if isinstance(kind, str):
        return Variable(name, kind)  # type: ignore[arg-type]  # the recorder writes no other
    if "on" in kind:
        return Variable(name, "switch", on=tuple(kind["on"]), off=tuple(kind["off"]), strict="strict" in kind)
    return Variable(
        name,
        "choice",
        choices=tuple(kind["choices"]),
        any_case=kind.get("any_case", False),
        listed=kind.get("list", False),
    )
