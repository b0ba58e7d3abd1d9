"""Risks: vLLM settings that open the server to its callers or let it run code, refused unless accepted by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import setting
from bezel_base.errors import NOT_SHOWN, Problem
from bezel_catalog import closest, unjudged_risks, vllm_risks
from bezel_catalog.option_values import as_int

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from bezel.planner.base.settings import Settings
    from bezel.planner.vllm.arguments import Argument
    from bezel_catalog import Risk, VllmOptions


def check_risks(settings: Settings, arguments: Mapping[str, Argument], options: VllmOptions) -> Iterator[Problem]:
    """Refuse each risk that is taken and not accepted, and each that is accepted and not taken.

    Args:
        settings: of the stack.
        arguments: by option name.
        options: the recording of the pinned release.
    """
    variables, secrets, accepted = settings.variables, settings.secrets, settings.access.accepted_risks
    new = unjudged_risks(options)
    risks = {**vllm_risks(), **new}
    taken: dict[str, object] = {}
    for risk in risks.values():
        value = _value(risk, variables, arguments)
        if risk.kind == "variable" and risk.name in secrets:
            taken[risk.name] = NOT_SHOWN
        elif _is_taken(risk, value, options) and (risk.name not in new or _is_own_text(risk, value, arguments)):
            taken[risk.name] = value
    accepted_risks = [name for name in accepted if name in risks]
    yield from [
        _refusal(risks[name], value, accepted_risks, secrets) for name, value in taken.items() if name not in accepted
    ]
    for number, name in enumerate(accepted):
        if name not in taken:
            yield _needless(f"access.accepted_risks.{number}", name, risks)


def _value(risk: Risk, variables: Mapping[str, str], arguments: Mapping[str, Argument]) -> object:
    if risk.kind == "variable":
        return variables.get(risk.name)
    name, *path = risk.name.split(".")
    return _part(arguments[name].value, path) if name in arguments else None


def _part(value: Any, path: Sequence[str]) -> Any:
    """The value at a path in a map; for a list of maps, all values at that path."""
    if not path:
        return value
    if isinstance(value, list):
        return [inner for part in value if (inner := _part(part, path)) is not None]
    return _part(value.get(path[0]), path[1:]) if isinstance(value, dict) else None


def _is_taken(risk: Risk, value: object, options: VllmOptions) -> bool:
    if risk.when == "set":
        values = [part for part in (value if isinstance(value, list) else [value]) if part not in (*risk.unless, None)]
        return any(values) and (not risk.only or any(word in risk.only for word in values))
    if risk.kind == "option":
        return value is True
    switch = options.variables.get(risk.name)
    if value is None or switch is None:
        return value is not None
    return as_int(value) not in (0, None) if switch.strict else value in switch.on


def _is_own_text(risk: Risk, value: object, arguments: Mapping[str, Argument]) -> bool:
    """Whether an unjudged setting may name code or a file: a number cannot, a default of the catalogue does not."""
    ours = risk.kind == "option" and not arguments[risk.name.partition(".")[0]].from_stack
    return not ours and _has_text(value)


def _has_text(value: object) -> bool:
    if isinstance(value, dict):
        return bool(value)
    return any(map(_has_text, value)) if isinstance(value, list) else isinstance(value, str)


def _refusal(risk: Risk, value: object, accepted: Sequence[str], secrets: Collection[str]) -> Problem:
    section = "vllm" if risk.kind == "option" else "secrets" if risk.name in secrets else "variables"
    names = ", ".join([*accepted, risk.name])
    return Problem(
        setting(f"{section}.{risk.name}"),
        value,
        f"{risk.consequence}.",
        f"remove it, or accept it with `{setting('access')}: {{accepted_risks: [{names}]}}`.",
    )


def _needless(key: str, name: str, risks: Collection[str]) -> Problem:
    if name in risks:
        consequence = "this stack does not take this risk: the entry would accept it if the risk is added later."
        return Problem(setting(key), name, consequence, "remove it.")
    near = closest(name, tuple(risks))
    consequence = "it is not one of the risks that have to be accepted."
    return Problem(setting(key), name, consequence, f"did you mean {near}?" if near else "remove it.")
