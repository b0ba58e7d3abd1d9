"""llguidance, asked for what vLLM asks it: to validate a grammar without a tokenizer.

Source: vllm 0.32.0, v1/structured_output/backend_guidance.py. The library bounds its own work.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.grammars.verdicts import RefusedError

if TYPE_CHECKING:
    from bezel_simulated_vllm.grammars.constraint import Constraint


class _TagError(ValueError):
    """A structural tag has no trigger, or there is none."""


def check(constraint: Constraint) -> None:
    """Refuse a constraint that the backend `guidance` refuses.

    Raises:
        RefusedError: with the text that vLLM sends.
    """
    import llguidance

    try:
        grammar = serialize(constraint)
    except _TagError as error:
        raise RefusedError(str(error)) from None
    except (ValueError, KeyError, TypeError) as error:
        raise RefusedError(f"Invalid grammar specification: {error}") from None
    if fault := llguidance.LLMatcher.validate_grammar(grammar, None):
        raise RefusedError(f"Grammar error: {fault}")


def serialize(constraint: Constraint) -> str:
    """Return llguidance's form of a constraint.

    Raises:
        ValueError, KeyError, TypeError: it has none.
    """
    import llguidance

    if constraint.kind == "json":
        return _of_schema(constraint.text)
    if constraint.kind == "json_object":
        return _of_schema('{"type": "object"}')
    if constraint.kind == "structural_tag":
        return _of_tag(json.loads(constraint.text))
    kind: Any = constraint.kind
    return llguidance.grammar_from(kind, constraint.text)


def _of_schema(schema: Any) -> str:
    import llguidance

    return llguidance.LLMatcher.grammar_from_json_schema(schema, defaults={"whitespace_flexible": True})


def _of_tag(tag: Any) -> str:
    import llguidance

    triggers, tags = tag["triggers"], []
    for each in tag["structures"]:
        begin = each["begin"]
        trigger = next((trigger for trigger in triggers if begin.startswith(trigger)), None)
        if trigger is None:
            raise _TagError(f"Trigger {begin} not found in triggers {triggers}")
        tags.append(
            llguidance.StructTag(trigger=trigger, begin=begin, grammar=_of_schema(each["schema"]), end=each["end"])
        )
    if not tags:
        raise _TagError("No structural tags found in the grammar spec.")
    return llguidance.StructTag.to_grammar(tags)
