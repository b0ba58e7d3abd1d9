"""JSON table of the kinds of faults, for clients in any language."""

from typing import Any

from bezel.localcloud.faults.kinds import KINDS, Parameter


def table() -> list[dict[str, Any]]:
    """Every kind with its parameters, in the order of the table."""
    return [
        {"kind": kind.name, "text": kind.text, "parameters": [_parameter(one) for one in kind.parameters]}
        for kind in KINDS.values()
    ]


def _parameter(one: Parameter) -> dict[str, Any]:
    bounds = {"least": one.least, "most": one.most, "choices": list(one.choices) or None}
    told = {key: value for key, value in bounds.items() if value is not None}
    return {"name": one.name, "default": one.default, "text": one.text} | told
