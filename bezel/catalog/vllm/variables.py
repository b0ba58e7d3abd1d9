"""Environment variables that vLLM and tpu-inference read, each with the values that its reader accepts.

Owns the reading of the recorded types. Leaves checks of a stack's variables to its callers.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bezel.catalog.loader import DATA

if TYPE_CHECKING:
    from collections.abc import Mapping

VariableKind = Literal["text", "int", "float", "json", "switch", "choice"]


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
