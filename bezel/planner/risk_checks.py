"""Settings of vLLM that open the server to its callers: refused, unless the stack file accepts each by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.catalog import closest, vllm_risks
from bezel.planner.option_values import as_int
from bezel.planner.problems import Problem, setting, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bezel.catalog import Risk, VllmOptions
    from bezel.planner.arguments import Argument

_KEY = "access.accepted_risks"


def check_risks(
    variables: Mapping[str, str],
    arguments: Mapping[str, Argument],
    accepted: Sequence[str],
    options: VllmOptions,
) -> list[Problem]:
    """Every risk that is taken and not accepted, and every one that is accepted and not taken.

    Args:
        variables: of the stack file.
        arguments: by option name.
        accepted: names of the risks that the stack file accepts.
        options: the recording of the pinned release.
    """
    taken = {
        risk.name: value
        for risk in vllm_risks().values()
        if _is_taken(risk, value := _value(risk, variables, arguments), options)
    }
    problems = [_refusal(vllm_risks()[name], value, accepted) for name, value in taken.items() if name not in accepted]
    for number, name in enumerate(accepted):
        if name not in taken:
            problems.append(_needless(f"{_KEY}.{number}", name))
    return problems


def _value(risk: Risk, variables: Mapping[str, str], arguments: Mapping[str, Argument]) -> object:
    if risk.kind == "variable":
        return variables.get(risk.name)
    return arguments[risk.name].value if risk.name in arguments else None


def _is_taken(risk: Risk, value: object, options: VllmOptions) -> bool:
    if risk.when == "set":
        return bool(value)
    if risk.kind == "option":
        return value is True
    switch = options.variables.get(risk.name)
    if value is None or switch is None:
        return value is not None
    return as_int(value) not in (0, None) if switch.strict else value in switch.on


def _refusal(risk: Risk, value: object, accepted: Sequence[str]) -> Problem:
    path = f"variables.{risk.name}" if risk.kind == "variable" else f"vllm.{risk.name}"
    names = ", ".join([*(name for name in accepted if name in vllm_risks()), risk.name])
    return Problem(
        setting(path),
        shown(value),
        f"{risk.consequence}.",
        f"remove it, or say that this is wanted: `{setting('access')}: {{accepted_risks: [{names}]}}`.",
    )


def _needless(key: str, name: str) -> Problem:
    near = None if name in vllm_risks() else closest(name, vllm_risks())
    consequence = (
        "this stack does not take this risk: the line would accept it on the day that somebody does."
        if name in vllm_risks()
        else "it is none of the risks that have to be accepted."
    )
    return Problem(setting(key), shown(name), consequence, f"did you mean {near}?" if near else "remove it.")
