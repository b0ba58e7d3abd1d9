"""A constraint of an answer: what a client asks for, and vLLM's checks of it before any library is asked.

Source: vllm 0.32.0, sampling_params.py (`_validate_structured_outputs`, `check_json_nesting`).
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

_DEEPEST = 64
_WRAPPED = 16
KINDS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")


class Constraint(NamedTuple):
    """One constraint.

    Attributes:
        kind: which of `KINDS`.
        text: the JSON of a schema, of the choices or of a structural tag; the text of the others.
        is_object: whether a schema was given as an object, not as its text.
    """

    kind: str
    text: str
    is_object: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the value counts as none in Python: most libraries are not asked about it."""
        return self.kind != "json_object" and (self.text == "" or (self.is_object and self.text == "{}"))


def constraint_of(outputs: dict[str, Any]) -> Constraint:
    """Return the constraint in structured outputs of one kind."""
    kind = next(name for name in KINDS if outputs.get(name) is not None)
    value = outputs[kind]
    if isinstance(value, str):
        return Constraint(kind, value)
    return Constraint(kind, "" if kind == "json_object" else json.dumps(value), is_object=isinstance(value, dict))


def request_error(outputs: dict[str, Any]) -> tuple[str, dict[str, str]] | None:
    """Return the name of vLLM's error about a constraint's form, with its values; None where it has the form."""
    if outputs.get("choice") == []:
        return "choice-empty", {}
    for name in ("grammar", "json"):
        if isinstance(outputs.get(name), str) and not outputs[name].strip():
            return "output-empty", {"name": name}
    tag = outputs.get("structural_tag")
    if is_too_deep(outputs.get("json"), _DEEPEST) or is_too_deep(tag, _DEEPEST + _WRAPPED):
        return "too-deep", {}
    if outputs.get("json_object") is False:
        return "no-json-object", {}
    if "\x00" in (outputs.get("regex") or ""):
        return "regex-nul", {}
    if isinstance(tag, str) and not tag.strip():
        return "output-empty", {"name": "structural_tag"}
    return None


def is_too_deep(spec: Any, limit: int = _DEEPEST + _WRAPPED) -> bool:
    """Whether objects and lists stand deeper in one another than the limit; a text is read as JSON.

    Args:
        spec: a value, or its JSON.
        limit: how many levels there may be; that of structural tags by default.
    """
    if isinstance(spec, str):
        try:
            spec = json.loads(spec)
        except RecursionError:
            return True
        except ValueError:
            return False
    level = [spec] if isinstance(spec, dict | list) else []
    for _ in range(limit):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
    return bool(level)
