"""Checks of a stack's environment variables: every rule in its order, and which variables the server reads.

Owns names and values against the recordings of vLLM and tpu-inference. Leaves conflicts with other settings, and values
that must not be in a variable, to bezel.planner.rules.env_names, and numbers and lengths to
bezel.planner.rules.platform_limits.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bezel.catalog import closest, tpu_variables
from bezel.errors import Problem, shown
from bezel.planner.base.option_values import as_float, as_int
from bezel.planner.base.problems import one_of, setting
from bezel.planner.rules.env_names import check_variables
from bezel.planner.rules.platform_limits import check_variable_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bezel.catalog import Variable, VllmOptions
    from bezel.planner.base.settings import Settings

PREFIX = "VLLM_"


def check_environment(
    settings: Settings,
    planned: Mapping[str, str],
    options: VllmOptions | None,
    *,
    tpu: bool = False,
    leased: bool = False,
) -> list[Problem]:
    """Check the stack file's variables by every rule; each variable reports only its first broken rule.

    Args:
        settings: of the stack.
        planned: variables that the plan sets itself.
        options: the recording of the pinned release, None where there is none.
        tpu: whether the container runs on TPU chips.
        leased: whether it runs on a leased machine.
    """
    variables, secrets = settings.variables, settings.secrets
    problems = check_variables(variables, planned, secrets)
    rest = _untold(variables, problems)  # a reported value may be a secret: no other rule shows it
    problems += check_variable_limits(rest, {**planned, **variables}, secrets, leased=leased)
    return problems + (check_read(_untold(rest, problems), options, tpu=tpu) if options else [])


def _untold(variables: Mapping[str, str], problems: Iterable[Problem]) -> dict[str, str]:
    told = {problem.key for problem in problems}
    return {name: value for name, value in variables.items() if setting(f"variables.{name}") not in told}


def check_read(variables: Mapping[str, str], options: VllmOptions, *, tpu: bool) -> list[Problem]:
    """Refuse variables that the server would not read, or would reject.

    Args:
        variables: of the stack file.
        options: the recording of the pinned release; one without variables refuses none.
        tpu: whether the container runs on TPU chips, where tpu-inference reads variables of its own.
    """
    if not options.variables:
        return []
    read = {**tpu_variables().variables, **options.variables} if tpu else options.variables
    problems = []
    for name, value in variables.items():
        if name in read:
            problems += _check_value(read[name], value)
        elif name.upper().startswith(PREFIX):
            problems.append(_unknown(name, value, options, read, tpu=tpu))
    return problems


def _unknown(name: str, value: str, options: VllmOptions, read: Mapping[str, Variable], *, tpu: bool) -> Problem:
    plugin = tpu_variables()
    if not name.startswith(PREFIX):
        why = "names of variables are in capitals: nothing reads it, and it would have no effect."
    elif tpu:
        why = f"neither vLLM {options.version} nor tpu-inference {plugin.version} reads it: it would have no effect."
    elif name in plugin.variables:
        why = "only tpu-inference, the server on TPUs, reads it; vLLM on a GPU refuses it and exits while it starts."
    else:
        why = f"vLLM {options.version} reads no such variable and exits while it starts (fail-on-environ-validation)."
    return Problem(setting(f"variables.{name}"), shown(value), why, _instead(name, options, read))


def _instead(name: str, options: VllmOptions, read: Mapping[str, Variable]) -> str:
    """The repair: the option of that name, else the nearest variable."""
    upper = name.upper()
    option = options.find("--" + upper.removeprefix(PREFIX).lower())
    if upper not in read and option is not None:
        return f"it is an option: write `{setting('vllm')}: {{{option[0].name}: …}}`."
    if upper in read:
        return f"did you mean {upper}?"
    # Without the common prefix, which would make any two names similar.
    known = [other.removeprefix(PREFIX) for other in read if other.startswith(PREFIX)]
    near = closest(upper.removeprefix(PREFIX), known, likeness=0.8)
    return f"did you mean {PREFIX}{near}?" if near else "remove it."


def _check_value(variable: Variable, value: str) -> list[Problem]:
    wanted = _wanted(variable, value)
    if wanted is None:
        return []
    if variable.kind == "switch" and not variable.strict:  # a strict one accepts any number
        why = f"it is a switch: the server takes a word that is not {wanted} for one of the two, without saying which."
    else:
        why = f"the server reads {wanted} there: it exits while it starts."
    repair = one_of(variable.choices, None) if variable.kind == "choice" else f"write {wanted}, as text in quotes."
    return [Problem(setting(f"variables.{variable.name}"), shown(value), why, repair)]


def _wanted(variable: Variable, value: str) -> str | None:
    """The accepted kind of value, where the value is another; None where it is accepted."""
    if variable.strict:
        return None if as_int(value) is not None else "1 or 0"
    if variable.kind == "switch":
        return None if value in (*variable.on, *variable.off) else f"{variable.on[0]} or {variable.off[0]}"
    if variable.kind == "int":
        return None if as_int(value) is not None else "a whole number"
    if variable.kind == "float":
        return None if as_float(value) is not None else "a number"
    if variable.kind == "json":
        return None if _is_json(value) else "JSON"
    if variable.kind == "choice":
        known = {choice.lower() for choice in variable.choices} if variable.any_case else {*variable.choices}
        words = [word.strip() for word in value.split(",") if word.strip()] if variable.listed else [value]
        chosen = {word.lower() for word in words} if variable.any_case else {*words}
        return None if chosen <= known else "one of the known words"
    return None


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True
