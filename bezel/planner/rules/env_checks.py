"""Checks of a stack's environment variables: names, values, lengths, and whether the server reads them.

Owns the order of the rules: a variable reports only the first one that it breaks. Leaves risky values to
bezel.planner.vllm.risk_checks. Sources of the limits, read in 2026-11: Cloud Run's quotas and its page on variables,
the discovery document of run v2 (EnvVar: name and value).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bezel.planner.base.problems import one_of, setting
from bezel.planner.rules.platform_checks import API_KEY, OF_THE_IMAGE, RESERVED, VARIABLE
from bezel.planner.vllm.option_checks import refused_key
from bezel_base.errors import NOT_SHOWN, Problem, format_value
from bezel_catalog import closest, tpu_variables
from bezel_catalog.option_values import as_float, as_int

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.planner.base.settings import Settings
    from bezel.planner.vllm.arguments import Argument
    from bezel_catalog import Accelerator, Variable, VllmOptions

PREFIX = "VLLM_"
_STRICT = "fail-on-environ-validation"
MAX_VARIABLES = 1000
MAX_NAME = 32_768  # characters
MAX_VALUE = 32_768  # bytes
_RESERVED_PREFIX = "X_GOOGLE_"


def planned_variables(gpu: Accelerator | None, *, offline: bool) -> dict[str, str]:
    """Variables that the plan itself sets in the container."""
    environment = ({"HF_HUB_OFFLINE": "1"} if offline else {}) | {"VLLM_NO_USAGE_STATS": "1"}
    if gpu and gpu.forward_compatible_cuda:
        environment["VLLM_ENABLE_CUDA_COMPATIBILITY"] = "1"
    return environment


def check_environment(
    settings: Settings,
    planned: Mapping[str, str],
    options: VllmOptions | None,
    chosen: Mapping[str, Argument | None],
    *,
    tpu: bool = False,
    leased: bool = False,
) -> Iterator[Problem]:
    """Check the stack file's variables by every rule.

    Args:
        settings: of the stack.
        planned: variables that the plan sets itself.
        options: the recording of the pinned release, None where there is none.
        chosen: the stack file's arguments.
        tpu: whether the container runs on TPU chips.
        leased: whether it runs on a leased machine.
    """
    names = {*settings.variables, *planned, *settings.secrets}
    if not leased and len(names) > MAX_VARIABLES:
        yield Problem(
            setting("variables"),
            f"{len(names)} variables",
            f"with those of the plan and of secrets there are more than the {MAX_VARIABLES} that Cloud Run allows.",
            f"remove {len(names) - MAX_VARIABLES} of them.",
        )
    for name, value in settings.variables.items():
        problem = check_name(name, value, planned, settings.secrets) or _check_limits(name, value, leased=leased)
        if problem:
            yield problem  # its value may be a secret: no other rule shows it
        elif options:
            yield from check_read({name: value}, options, tpu=tpu, strict=_is_strict(chosen))


def check_name(name: str, value: str, planned: Mapping[str, str], secrets: Mapping[str, str]) -> Problem | None:
    """Check a variable against the plan, the platform and the secrets."""
    key = setting(f"variables.{name}")
    if not VARIABLE.fullmatch(name):
        return Problem(key, value, "it is not a valid name of a variable.", "write letters, digits and underscores.")
    if name == API_KEY:
        return refused_key(key)
    from bezel_base.text.redaction import is_secret  # late: its patterns take longer to compile than a plan takes

    if is_secret(name, value) or format_value(value) == NOT_SHOWN:
        return Problem(
            key,
            NOT_SHOWN,
            "everyone who may look at the service or the machine could read it.",
            f"put the value into Secret Manager and write `{setting('secrets')}: {{{name}: NAME_OF_SECRET}}`.",
        )
    if name in RESERVED or name in planned:
        return Problem(key, value, f"the {'plan' if name in planned else 'platform'} sets it.", "remove it.")
    if name in OF_THE_IMAGE:
        consequence = "it replaces the image's own value, by which vLLM and its libraries are found: it may not start."
        return Problem(key, value, consequence, "remove it.")
    if name in secrets:
        return Problem(key, value, f"{setting('secrets')} sets it too.", "keep it in one of the two.")
    return None


def _check_limits(name: str, value: str, *, leased: bool) -> Problem | None:
    """Check lengths and characters. A leased machine passes variables line by line."""
    size = len(value.encode())
    if "\0" in value:
        refusal = "a process cannot get a NUL character: the revision is refused.", "remove the character."
    elif leased and ("\n" in value or "\r" in value):
        refusal = (
            "a leased machine passes variables line by line: nothing would start, and the machine is paid for.",
            "write it in one line.",
        )
    elif leased:
        return None
    elif name.startswith(_RESERVED_PREFIX):
        refusal = f"Cloud Run reserves names that begin with {_RESERVED_PREFIX}.", "choose another name."
    elif len(name) > MAX_NAME:
        refusal = f"Cloud Run refuses names above {MAX_NAME} characters.", "shorten it."
    elif size > MAX_VALUE:
        refusal = (
            f"it has {size} bytes; Cloud Run refuses values above {MAX_VALUE}.",
            "put the content into a file of the bucket, and its path here.",
        )
    else:
        return None
    return Problem(setting(f"variables.{format_value(name)}"), format_value(value)[:80], *refusal)


def _is_strict(chosen: Mapping[str, Argument | None]) -> bool:
    """Whether vLLM exits on a variable that it does not know, as the plan has it unless the stack file says no."""
    if _STRICT not in chosen:
        return True
    argument = chosen[_STRICT]
    return argument is not None and argument.value is True


def check_read(
    variables: Mapping[str, str], options: VllmOptions, *, tpu: bool, strict: bool = True
) -> Iterator[Problem]:
    """Refuse variables that the server would not read, or would reject.

    Args:
        variables: of the stack file.
        options: the recording of the pinned release; one without variables refuses none.
        tpu: whether the container runs on TPU chips, where tpu-inference reads variables of its own.
        strict: whether vLLM exits on a variable that it does not know.
    """
    if not options.variables:
        return
    read = {**tpu_variables().variables, **options.variables} if tpu else options.variables
    for name, value in variables.items():
        if name in read:
            yield from _check_value(read[name], value)
        elif name.upper().startswith(PREFIX):
            yield _unknown(name, value, options, read, tpu=tpu, strict=strict)


def _unknown(
    name: str, value: str, options: VllmOptions, read: Mapping[str, Variable], *, tpu: bool, strict: bool
) -> Problem:
    plugin = tpu_variables()
    if not name.startswith(PREFIX):
        why = "names of variables are in capitals: nothing reads it, and it would have no effect."
    elif tpu:
        why = f"neither vLLM {options.version} nor tpu-inference {plugin.version} reads it: it would have no effect."
    elif not strict:
        why = f"vLLM {options.version} reads no such variable on a GPU: it would have no effect."
    elif name in plugin.variables:
        why = "only tpu-inference, the server on TPUs, reads it; vLLM on a GPU refuses it and exits while it starts."
    else:
        why = f"vLLM {options.version} reads no such variable and exits while it starts (fail-on-environ-validation)."
    return Problem(setting(f"variables.{name}"), value, why, _repair(name, options, read))


def _repair(name: str, options: VllmOptions, read: Mapping[str, Variable]) -> str:
    """The option of that name, else the nearest variable."""
    upper = name.upper()
    if upper in read:
        return f"did you mean {upper}?"
    if option := options.find("--" + upper.removeprefix(PREFIX).lower()):
        return f"it is an option: write `{setting('vllm')}: {{{option[0].name}: …}}`."
    # Without the common prefix, which would make any two names similar.
    names = [other.removeprefix(PREFIX) for other in read if other.startswith(PREFIX)]
    near = closest(upper.removeprefix(PREFIX), names, likeness=0.8)
    return f"did you mean {PREFIX}{near}?" if near else "remove it."


def _check_value(variable: Variable, value: str) -> Iterator[Problem]:
    expected = _expected_kind(variable, value)
    if expected is None:
        return
    if variable.kind == "switch" and not variable.strict:  # a strict one accepts any number
        why = f"it is a switch: the server reads a word other than {expected} as one of the two, without a message."
    else:
        why = f"the server expects {expected}: it exits while it starts."
    repair = one_of(variable.choices, None) if variable.kind == "choice" else f"write {expected}, as text in quotes."
    yield Problem(setting(f"variables.{variable.name}"), value, why, repair)


def _expected_kind(variable: Variable, value: str) -> str | None:
    """The accepted kind of value, where the value is another; None where it is accepted."""
    if variable.strict:
        return None if as_int(value) is not None else "1 or 0"
    match variable.kind:
        case "switch":
            return None if value in (*variable.on, *variable.off) else f"{variable.on[0]} or {variable.off[0]}"
        case "int":
            return None if as_int(value) is not None else "a whole number"
        case "float":
            return None if as_float(value) is not None else "a number"
        case "json":
            return None if _is_json(value) else "JSON"
        case "choice":
            choices = {choice.lower() for choice in variable.choices} if variable.any_case else {*variable.choices}
            values = [word.strip() for word in value.split(",") if word.strip()] if variable.listed else [value]
            chosen = {word.lower() for word in values} if variable.any_case else {*values}
            return None if chosen <= choices else "one of the known words"
    return None


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True
