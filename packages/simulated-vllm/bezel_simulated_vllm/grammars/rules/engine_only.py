"""Constraints that xgrammar converts when a request comes, and on which the engine fails.

Source: the behaviour of xgrammar 0.2.8 (`GrammarCompiler`): a text of a negative length, and an expression within a
grammar, whose automaton is built there; and of vLLM 0.32.0: references in a circle, which allow no token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.grammars.rules import expressions, schemas
from bezel_simulated_vllm.grammars.rules.ebnf_tokens import tokens
from bezel_simulated_vllm.grammars.verdicts import RefusedError

if TYPE_CHECKING:
    from bezel_simulated_vllm.grammars.verdicts import Work


def check_schema(schema: Any, work: Work) -> None:
    """Refuse a schema with a text of a negative length, and one that is nothing but references in a circle.

    Raises:
        RefusedError: it is such a schema.
        NotJudgedError: it takes more than the bound of work.
    """
    _check_references(schema)
    pending = [schema]
    while pending:
        work.spend()
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        elif isinstance(node, dict):
            length = node.get("minLength")
            if isinstance(length, int) and length < 0 and node.get("type") == "string" and "pattern" not in node:
                raise RefusedError("Check failed: (lower >= 0 && (upper == -1 || upper >= lower))")
            pending += node.values()


def _check_references(schema: Any) -> None:
    """Follow the references of a schema from one to the next."""
    node, followed = schema, set()
    while isinstance(node, dict) and isinstance(reference := node.get("$ref"), str):
        if reference in followed:
            raise RefusedError("no token fits references in a circle")
        followed.add(reference)
        node = next(schemas.targets(reference, schema), None)


def check_grammar(text: str, work: Work) -> None:
    """Refuse a grammar with an expression that makes no automaton.

    Raises:
        RefusedError: it has one.
        NotJudgedError: it takes more than the bound of work.
    """
    listed = tokens(text, work)
    for name, opened, pattern in zip(listed, listed[1:], listed[2:], strict=False):
        if (name.kind, name.value, opened.kind, pattern.kind) == ("name", "Regex", "(", "string"):
            expressions.check_pattern(pattern.value, work)
