"""Checks of one vLLM option at a time: whether the recorded list has it, and the parser accepts its value.

Owns what `vllm serve` refuses before it looks at any other option, and the options that belong to the plan. Leaves
combinations to bezel.planner.vllm.argument_conflicts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bezel.planner.base.problems import of_option, one_of, setting
from bezel.planner.vllm.arguments import as_word, canonical, typed_values
from bezel.planner.vllm.option_schema import misfits
from bezel_base.errors import NOT_SHOWN, Problem, format_value
from bezel_catalog import closest, removed_options
from bezel_catalog.vllm.typed_values import SWITCHES, typed_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.planner.vllm.arguments import Argument
    from bezel.planner.vllm.option_schema import Misfit
    from bezel_catalog import VllmOption, VllmOptions

_SECRET = "a secret in an argument can be read by everyone who may look at the service."  # noqa: S105 - a sentence
_PROBED = "the platform sends plain HTTP to the planned port: no request would get an answer."
_ALL_ADDRESSES = "0.0.0.0"
_UNPLANNED = "the cache would have another size than the plan computes, so the memory fit would not be known."
# Options that the plan sets from other settings, or that cannot work behind Cloud Run: consequence and repair.
OWNED = {
    "model": ("the plan writes the model's path itself.", f"set {setting('model')} and {setting('weights')}."),
    "port": ("the plan writes the port itself: at another one the server would never become ready.", "remove it."),
    "host": (
        "it may listen at this address only; where the platform connects to another, it would never become ready.",
        f"remove it, or write {_ALL_ADDRESSES}.",
    ),
    "uds": (_PROBED, "remove it."),
    "grpc": (_PROBED, "remove it."),
    "headless": (_PROBED, "remove it."),
    "ssl-keyfile": (_PROBED, "remove it: Cloud Run ends TLS in front of the service."),
    "ssl-certfile": (_PROBED, "remove it: Cloud Run ends TLS in front of the service."),
    "config": (
        "the content of a file in the image cannot be checked or priced.",
        f"write the options under {setting('vllm')}.",
    ),
    "kv-cache-memory-bytes": (_UNPLANNED, "set gpu-memory-utilization instead."),
    "num-gpu-blocks-override": (_UNPLANNED, "set gpu-memory-utilization instead."),
    "disable-hybrid-kv-cache-manager": (_UNPLANNED, "remove it."),
    "hf-token": (_SECRET, f"write `{setting('secrets')}: {{HF_TOKEN: NAME_OF_SECRET}}`."),
}
_SEVERAL = "it is for a server of several machines, and this has one: vLLM ignores it, exits while it starts, or waits."
_OF_SEVERAL = (
    "nnodes",
    "node-rank",
    "master-addr",
    "master-port",
    "ray-workers-use-nsight",
    "enable-fault-tolerance",
    "data-parallel-rank",
    "data-parallel-start-rank",
    "data-parallel-size-local",
    "data-parallel-address",
    "data-parallel-rpc-port",
    "data-parallel-external-lb",
    "data-parallel-hybrid-lb",
    "data-parallel-multi-port-external-lb",
    "data-parallel-supervisor-port",
)
OWNED |= dict.fromkeys(_OF_SEVERAL, (_SEVERAL, "remove it."))
_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    **dict.fromkeys(("human-int", "human-int-or-auto"), "a whole number such as 4096 or 4K"),
    "json": "a map, written as keys and values",
}
_POSITIVE = frozenset({"max-num-seqs", "max-num-batched-tokens", "tensor-parallel-size", "pipeline-parallel-size"})
# Bounds that the server sets on options that are no field of a configuration class.
_NOT_NEGATIVE = frozenset({"sse-keep-alive-interval"})
_PLUGINS = {"tool-call-parser": "tool-parser-plugin", "reasoning-parser": "reasoning-parser-plugin"}


def check_options(arguments: Mapping[str, Argument], options: VllmOptions) -> Iterator[Problem]:
    """Check every option by itself.

    Args:
        arguments: by option name, names missing from the list included.
        options: the recorded list of the pinned release.
    """
    for name, argument in arguments.items():
        match options.find(f"--{name}"):
            case None:
                yield _unknown(name, argument.written, options)
            case _ if name == "api-key":
                yield refused_key(setting("vllm.api-key"))
            case option, _ if name in OWNED and argument.from_stack and not _is_unchanged(option, argument.written):
                yield of_option(name, NOT_SHOWN if name == "hf-token" else argument.written, *OWNED[name])
            case option, _:
                applicable = options if _looks_up(name, arguments) else replace(options, registered={})
                yield from _check_value(option, argument.written, applicable)


def _looks_up(name: str, arguments: Mapping[str, Argument]) -> bool:
    """Whether vLLM looks a parser up among its own: not beside a plugin, nor a tool parser that is not used."""
    values = typed_values(arguments)
    unused = name == "tool-call-parser" and values.get("enable-auto-tool-choice") is not True
    return not unused and not (name in _PLUGINS and values.get(_PLUGINS[name]))


def check_fields(arguments: Mapping[str, Argument], options: VllmOptions) -> Iterator[Problem]:
    """Check every value that the parser accepts against its field's schema in vLLM's configuration classes.

    Runs after more specific rules: of two problems with one value the first is reported.
    """
    for name, argument in arguments.items():
        match = options.find(f"--{name}")
        if match and not _check_value(match[0], argument.written, options):
            yield from _check_field(match[0], argument.written, options)


def check_spellings(chosen: Mapping[str, object], options: VllmOptions) -> Iterator[Problem]:
    """Refuse an option in two spellings: one of them would be dropped silently.

    Args:
        chosen: the stack file's options in their original spelling.
        options: the recorded list of the pinned release.
    """
    written: dict[str, list[str]] = {}
    for spelling, value in chosen.items():
        written.setdefault(canonical(spelling, value, options)[0], []).append(spelling)
    for name, spellings in written.items():
        if len(spellings) > 1:
            names = " and ".join(format_value(spelling) for spelling in spellings)
            consequence = "they are one option: only one of the values would have an effect."
            yield of_option(name, names, consequence, f"keep one of them, written as {name}.")


def check_left_out(
    chosen: Mapping[str, Argument | None], defaults: Mapping[str, object], options: VllmOptions
) -> Iterator[Problem]:
    """Refuse a null for an option that neither the release nor the plan has: it would remove no default.

    Args:
        chosen: the stack file's options, None for each null.
        defaults: the plan's own options; the release may lack one.
        options: the recorded list of the pinned release.
    """
    for name, argument in chosen.items():
        if argument is None and name not in defaults and not options.find(f"--{name}"):
            near = closest(name, options.names())
            consequence = f"vLLM {options.version} does not have this option, so no default of it is left out."
            yield of_option(name, None, consequence, f"did you mean {near}?" if near else "remove it.")


def _unknown(name: str, value: object, options: VllmOptions) -> Problem:
    base, _, inner = name.partition(".")
    variable = name.replace("-", "_").upper()
    if name in removed_options():
        consequence = f"vLLM {options.version} no longer has this option: it exits with code 2."
        repair = f"{removed_options()[name]}."
    elif inner and options.find(f"--{base}"):
        consequence, repair = "the plan writes one value for each option.", f"write `{base}: {{{inner}: …}}`."
    elif variable in options.variables:
        consequence = "it is an environment variable, not an option: vLLM exits with code 2 (unrecognized arguments)."
        repair = f"write `{setting('variables')}: {{{variable}: …}}`, its value as text in quotes."
    else:
        near = closest(name, options.names())
        consequence = (
            f"vLLM {options.version} does not have this option: it exits with code 2 (unrecognized arguments)."
        )
        listing = f"remove it; `vllm serve --help=all` of {options.version} lists all options."
        repair = f"did you mean {near}?" if near else listing
    return of_option(name, value, consequence, repair)


def _is_unchanged(option: VllmOption, value: object) -> bool:
    """Whether an option that belongs to the plan is set to its default, or to an equivalent value."""
    off = value is False and option.kind in SWITCHES
    unchanged = option.name in _OF_SEVERAL and value == option.default
    return off or unchanged or (option.name, value) == ("host", _ALL_ADDRESSES)


def _check_value(option: VllmOption, value: object, options: VllmOptions) -> list[Problem]:
    if option.kind in SWITCHES:
        expected = None if isinstance(value, bool) else "true or false"
    elif value == [] and option.kind == "values":
        expected = "at least one value"
    elif isinstance(value, list) and option.kind in ("values", "append"):
        return [problem for part in value for problem in _check_value(replace(option, kind="value"), part, options)]
    elif isinstance(value, list) and option.type != "json":
        expected = "one value"
    else:
        expected = _expected_kind(option, value)
    if expected:
        # A number within the parser's type is refused by the class that gets it.
        stage = "it exits while it starts" if _is_parsed(option, value) else "its parser exits with code 2"
        consequence = f"vLLM expects {expected}: {stage}."
        return [of_option(option.name, value, consequence, f"write {expected}.")]
    choices, word = option.choices or options.registered.get(option.name, ()), as_word(value)
    if not choices or word in choices or (option.any_case and word.lower() in choices):
        return []
    stage = "its parser exits with code 2" if option.choices else "the server exits while it starts"
    consequence = f"vLLM {options.version} does not know this value: {stage}."
    return [of_option(option.name, value, consequence, one_of(choices, closest(word, choices)))]


def _check_field(option: VllmOption, value: object, options: VllmOptions) -> list[Problem]:
    schema = options.values.get(option.dest)
    if schema is None:
        return []
    if option.kind == "values":
        # Words of a command line are text, even if they look like numbers.
        parsed: object = [as_word(part) for part in (value if isinstance(value, list) else [value])]
    elif option.type in ("human-int", "human-int-or-auto"):
        parsed = typed_value(option, value) if value != "auto" else None
    else:
        parsed = value
    if parsed is None:
        return []
    return [_refusal(option, misfit, options.version) for misfit in misfits(schema, parsed)]


def _refusal(option: VllmOption, misfit: Misfit, version: str) -> Problem:
    name = ".".join((option.name, *misfit.path))
    if misfit.choices:
        near = closest(misfit.path[-1] if misfit.unknown_key else as_word(misfit.value), misfit.choices)
        what = "key" if misfit.unknown_key else "value"
        consequence = f"vLLM {version} does not know this {what}: it exits while it starts."
        repair = one_of(misfit.choices, near)
    else:
        consequence = f"vLLM {version} expects {misfit.expected}: it exits while it starts."
        repair = f"write {misfit.expected}."
    return of_option(name, format_value(misfit.value), consequence, repair)


def _is_parsed(option: VllmOption, value: object) -> bool:
    bounded = option.name in _POSITIVE or option.name in _NOT_NEGATIVE
    return bounded and typed_value(option, value) is not None


def _expected_kind(option: VllmOption, value: object) -> str | None:
    """The accepted kind of value, where the value is another; None where it is accepted."""
    read = typed_value(option, value)
    if option.name in _POSITIVE:
        return None if (read or 0) > 0 else "a whole number above 0"
    if option.name in _NOT_NEGATIVE and (read or 0) < 0:
        return "a whole number of at least 0"
    if option.type == "json" and isinstance(option.default, dict) and not isinstance(read, dict):
        return _EXPECTED["json"]
    if option.type == "str" and isinstance(value, dict | bool):
        return "text"
    return _EXPECTED.get(option.type) if read is None else None


def refused_key(key: str) -> Problem:
    """Refuse vLLM's API key, however it is set: it occupies the header that carries the caller's identity."""
    return Problem(
        key,
        NOT_SHOWN,
        "vLLM expects its key in the header that carries a caller's identity to Cloud Run: the health check, the "
        "benchmark and every caller would get 401.",
        f"remove it: callers are admitted by their identity, e.g. `{setting('access')}: "
        "{invokers: [serviceAccount:NAME@PROJECT.iam.gserviceaccount.com]}`; for clients that can only send a key, "
        f"write `{setting('access')}: {{keys: true}}`.",
    )
